# Network cards: which core handles which queue, against the router's core map; rings, coalescing, offloads.

nic_settings() {
    list_interfaces
    nic_steering
    nic_hardware
}

# Interfaces that are up and have a device behind them, in $nics; `--interface` narrows it.
list_interfaces() {
    nics=
    nics_absent='no network interface here is up and has a device'
    for nic_path in "$root"/sys/class/net/*; do
        nic=${nic_path##*/}
        [ -e "$nic_path/device" ] || continue
        case $nic in
        *[!A-Za-z0-9._@:-]*) continue ;;
        esac
        [ -z "$interfaces" ] || named_in "$interfaces" "$nic" || continue
        # `unknown` is what drivers without carrier detection say.
        read_value "/sys/class/net/$nic/operstate" || continue
        case $value in
        up | unknown) nics="$nics $nic" ;;
        esac
    done
    [ -z "$interfaces" ] || nics_absent='no interface of --interface is up and has a device'
}

# Calls ACTION with each interface, or skips with a word.
for_each_nic() { # ACTION [ARGUMENT...]
    if [ -z "$nics" ]; then
        skip "$nics_absent"
        return
    fi
    for nic in $nics; do
        "$@"
    done
}

for_each_nic_by_core_map() { # ACTION [ARGUMENT...]
    if [ "$worker_count" -eq 0 ]; then
        skip 'the workers are not pinned, so no core is theirs'
        return
    fi
    for_each_nic "$@"
}

nic_steering() {
    setting nic.irq_affinity \
        --why 'The interrupt of a queue belongs on the core of the worker that serves it: the packet is then processed where it will be read.' \
        --effect 'Queues go round the workers. Not persisted, since interrupt numbers move: apply again after a restart. irqbalance undoes it unless these interrupts are banned from it.' \
        --source 'Documentation/core-api/irq/irq-affinity.rst; Documentation/networking/scaling.rst (RSS IRQ Configuration)' &&
        for_each_nic_by_core_map examine_interrupts
    setting nic.irqbalance \
        --why 'irqbalance moves interrupts while it runs and so overrides nic.irq_affinity.' \
        --effect 'Ban the interrupts of the network card (--banirq, or IRQBALANCE_BANNED_CPULIST for the cores of the workers), or stop the service.' \
        --source 'Documentation/networking/scaling.rst (RSS IRQ Configuration); irqbalance(1)' &&
        examine_irqbalance
    setting nic.rps_cpus \
        --why 'With fewer receive queues than workers, some worker cores would get no packets of their own; RPS hands them on. With a queue per worker it is redundant, and costs an interrupt between cores.' \
        --effect 'Protocol processing spreads over the workers that share a queue; or is left to the hardware.' \
        --source 'Documentation/networking/scaling.rst (RPS: Suggested Configuration)' &&
        for_each_nic_by_core_map examine_rps
    setting net.core.rps_sock_flow_entries \
        --why 'The table that tells RFS which core reads a connection. Useful only where RPS is.' \
        --effect 'A packet is processed on the core of the worker that owns the connection. 32768 suits a moderately loaded server.' \
        --source 'Documentation/networking/scaling.rst (RFS: Suggested Configuration)' &&
        examine_flow_table
    setting nic.rps_flow_cnt \
        --why 'Each queue needs its share of the RFS table.' \
        --effect 'The total divided by the number of receive queues.' \
        --source 'Documentation/networking/scaling.rst (RFS: Suggested Configuration)' &&
        for_each_nic_by_core_map examine_flow_counts
    setting nic.xps_cpus \
        --why 'A worker that always sends on the same transmit queue does not contend for it, and its completions come back to its own core.' \
        --effect 'Each transmit queue belongs to the workers that go round to it.' \
        --source 'Documentation/networking/scaling.rst (XPS: Suggested Configuration)' &&
        for_each_nic_by_core_map examine_xps
}

# Sets $queue_count for receive (rx) or transmit (tx) queues of $nic.
count_queues() { # rx|tx
    queue_count=0
    for queue_path in "$root/sys/class/net/$nic/queues/$1"-*; do
        [ -d "$queue_path" ] && queue_count=$((queue_count + 1))
    done
}

examine_rps() {
    count_queues rx
    queue=0
    relation=mask
    while [ $queue -lt $queue_count ]; do
        mask=0
        [ $queue_count -ge "$worker_count" ] || mask_of_queue $queue $queue_count
        examine queue "/sys/class/net/$nic/queues/rx-$queue/rps_cpus" "$nic rx-$queue" "$mask"
        queue=$((queue + 1))
    done
}

# Whether some interface has fewer receive queues than there are workers.
rps_is_used() {
    for nic in $nics; do
        count_queues rx
        [ $queue_count -ge "$worker_count" ] || return 0
    done
    return 1
}

examine_flow_table() {
    if rps_is_used; then
        examine sysctl /proc/sys/net/core/rps_sock_flow_entries
    else
        skip 'each worker has a receive queue of its own: RFS is not needed'
    fi
}

examine_flow_counts() {
    count_queues rx
    if [ $queue_count -ge "$worker_count" ]; then
        skip 'each worker has a receive queue of its own: RFS is not needed' "$nic"
        return
    fi
    queue=0
    while [ $queue -lt $queue_count ]; do
        examine queue "/sys/class/net/$nic/queues/rx-$queue/rps_flow_cnt" "$nic rx-$queue" $((wanted / queue_count))
        queue=$((queue + 1))
    done
}

examine_xps() {
    count_queues tx
    if [ $queue_count -le 1 ]; then
        skip 'one transmit queue: there is nothing to choose' "$nic"
        return
    fi
    queue=0
    relation=mask
    while [ $queue -lt $queue_count ]; do
        mask_of_queue $queue $queue_count
        examine queue "/sys/class/net/$nic/queues/tx-$queue/xps_cpus" "$nic tx-$queue" "$mask"
        queue=$((queue + 1))
    done
}

examine_interrupts() {
    interrupts_seen=
    # A virtio device has its interrupts at its parent.
    for interrupt_path in "$root/sys/class/net/$nic/device/msi_irqs"/* "$root/sys/class/net/$nic/device/../msi_irqs"/*; do
        interrupt=${interrupt_path##*/}
        is_number "$interrupt" || continue
        name_interrupt "$interrupt"
        queue_of_interrupt "$interrupt_name" || continue
        core_of_queue "$interrupt_queue"
        interrupts_seen=yes
        examine irq "/proc/irq/$interrupt/smp_affinity_list" "$nic $interrupt_name" "$core"
    done
    [ -n "$interrupts_seen" ] || skip 'no interrupt here is named after a queue' "$nic"
}

# The last word of the interrupt's line in /proc/interrupts.
name_interrupt() { # NUMBER
    interrupt_name=$(awk -v line="$1:" '$1 == line { print $NF; exit }' "$root/proc/interrupts" 2>/dev/null)
}

# The queue that drivers put at the end of an interrupt's name: virtio2-input.0, eth0-TxRx-3, mlx5_comp7@pci:...
# Fails for interrupts that serve no queue, such as link changes.
queue_of_interrupt() { # NAME
    interrupt_base=${1%%@*}
    interrupt_queue=${interrupt_base##*[!0-9]}
    is_number "$interrupt_queue" && [ ${#interrupt_queue} -le 4 ] || return 1
    case ${interrupt_base%"$interrupt_queue"} in
    *input. | *output. | *[Tt]x[Rr]x- | *[Rr]x[Tt]x- | *-[Tt]x-[Rr]x- | *-[Rr]x- | *-[Tt]x- | *_comp | *-fp-) ;;
    *) return 1 ;;
    esac
}

examine_irqbalance() {
    if [ -e "$root/run/irqbalance" ] || [ -e "$root/run/irqbalance.pid" ]; then
        advise running "$wanted" 'it will move the interrupts again'
    else
        finding as_wanted '' '' '' 'not running' "$wanted" '' ''
    fi
}
