# TCP and socket settings of the whole host (or of the network namespace that this runs in).

network_settings() {
    network_accepting
    network_connecting
    network_buffering
    network_polling
}

network_accepting() {
    setting net.core.somaxconn \
        --why 'The kernel cuts every listen backlog to this; the router asks for 4096 per worker. The default was 128 before Linux 5.4.' \
        --effect 'A burst of connections waits to be accepted instead of having its handshake dropped and retried after a second.' \
        --source 'Documentation/networking/ip-sysctl.rst (somaxconn); listen(2)' \
        --measured "$SHOWN_BY_MEASURE" &&
        examine sysctl /proc/sys/net/core/somaxconn
    setting net.ipv4.tcp_max_syn_backlog \
        --why 'Half-open connections per listener that are remembered; it should not be smaller than the accept queue that they move into.' \
        --effect 'Bursts of new connections complete without SYN cookies, which lose TCP options on the way.' \
        --source 'Documentation/networking/ip-sysctl.rst (tcp_max_syn_backlog)' &&
        examine sysctl /proc/sys/net/ipv4/tcp_max_syn_backlog
    setting net.core.netdev_max_backlog \
        --why 'Packets per core that wait for protocol processing when another core received them (RPS) or when they come over loopback.' \
        --effect 'Bursts steered to a busy worker core wait instead of being dropped. The documentation saw 1000 and 10000 both work well.' \
        --source 'Documentation/admin-guide/sysctl/net.rst; Documentation/networking/scaling.rst (RPS Flow Limit)' &&
        examine sysctl /proc/sys/net/core/netdev_max_backlog
}

network_connecting() {
    setting net.ipv4.ip_local_port_range \
        --why 'Each upstream connection to the same address takes one local port. The range is only widened upwards: below 32768 are the node ports of Kubernetes and the usual ports of model servers.' \
        --effect '16 % more connections to one model server. A range that is already wider stays as it is.' \
        --source 'Documentation/networking/ip-sysctl.rst (ip_local_port_range); RFC 6056' &&
        examine sysctl /proc/sys/net/ipv4/ip_local_port_range
    setting net.ipv4.tcp_timestamps \
        --why 'Reuse of TIME-WAIT ports and protection against old segments rest on timestamps.' \
        --effect 'The kernel default; 12 bytes per segment.' \
        --source 'RFC 7323; Documentation/networking/ip-sysctl.rst (tcp_timestamps)' &&
        examine sysctl /proc/sys/net/ipv4/tcp_timestamps
    setting net.ipv4.tcp_tw_reuse \
        --why 'Where upstreams close connections often, closed ones hold their ports for a minute. 2 (the kernel default) lets new outgoing connections reuse them on loopback only, 1 everywhere.' \
        --effect 'Outgoing connections do not run out of ports; incoming ones are not touched. With pooled upstream connections it rarely matters, so edge-latency keeps the default.' \
        --source 'Documentation/networking/ip-sysctl.rst (tcp_tw_reuse); RFC 6191' \
        --measured "$SHOWN_BY_MEASURE" &&
        examine sysctl /proc/sys/net/ipv4/tcp_tw_reuse
    setting net.ipv4.tcp_slow_start_after_idle \
        --why 'Keep-alive connections rest between requests; with 1 the kernel then forgets how much the path carries.' \
        --effect 'A body larger than the initial window (about 14 KiB) does not pay extra round trips after each pause.' \
        --source 'Documentation/networking/ip-sysctl.rst (tcp_slow_start_after_idle); RFC 5681 section 4.1, RFC 6928' \
        --measured "$SHOWN_BY_MEASURE" &&
        examine sysctl /proc/sys/net/ipv4/tcp_slow_start_after_idle
}

network_buffering() {
    setting net.ipv4.tcp_rmem \
        --why 'The upper end of the automatic receive window. net.core.rmem_max is left alone: it bounds SO_RCVBUF, which the router does not set.' \
        --effect 'Large bodies from far clients fill the path. Memory is used only by connections that need it, within tcp_mem.' \
        --source 'Documentation/networking/ip-sysctl.rst (tcp_rmem); RFC 7323 section 2' &&
        examine sysctl /proc/sys/net/ipv4/tcp_rmem
    setting net.ipv4.tcp_wmem \
        --why 'The upper end of the automatic send buffer. net.core.wmem_max is left alone: it bounds SO_SNDBUF, which the router does not set.' \
        --effect 'Large answers to far clients fill the path. Memory is used only by connections that need it, within tcp_mem.' \
        --source 'Documentation/networking/ip-sysctl.rst (tcp_wmem)' &&
        examine sysctl /proc/sys/net/ipv4/tcp_wmem
}

network_polling() {
    setting net.core.busy_read \
        --why 'It makes blocking reads spin before they sleep. The router never blocks in a read: its reads wait in the ring.' \
        --effect 'Other processes do not spin on the cores of the workers. A process that wants it sets SO_BUSY_POLL on its own socket, the way that the documentation prefers.' \
        --source 'Documentation/admin-guide/sysctl/net.rst (busy_read); Documentation/networking/napi.rst (Busy polling)' &&
        examine sysctl /proc/sys/net/core/busy_read
    setting net.core.busy_poll \
        --why 'It makes poll, select and epoll spin before they sleep; the ring has its own way (IORING_REGISTER_NAPI), which the router does not use.' \
        --effect 'No core is spent on spinning that the router gains nothing from.' \
        --source 'Documentation/admin-guide/sysctl/net.rst (busy_poll); Documentation/networking/napi.rst (Busy polling)' &&
        examine sysctl /proc/sys/net/core/busy_poll
}
