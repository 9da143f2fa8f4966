# Pages, swap and NUMA.

memory_settings() {
    setting vm.swappiness \
        --why 'A page of the router that was swapped out costs a disk read in the middle of a request.' \
        --effect 'The kernel prefers to drop page cache; it still swaps before it runs out of memory.' \
        --source 'Documentation/admin-guide/sysctl/vm.rst (swappiness)' &&
        examine sysctl /proc/sys/vm/swappiness
    setting memory.transparent_hugepage \
        --why 'With `always` any page fault may have to find and clear 2 MiB, and a background thread moves pages under running workers.' \
        --effect 'Huge pages only where a program asks for them.' \
        --source 'Documentation/admin-guide/mm/transhuge.rst (enabled)' &&
        examine select /sys/kernel/mm/transparent_hugepage/enabled
    setting memory.transparent_hugepage_defrag \
        --why 'With `always` a page fault stalls while the kernel compacts memory.' \
        --effect 'Only programs that ask for huge pages wait for them; it is the kernel default.' \
        --source 'Documentation/admin-guide/mm/transhuge.rst (defrag)' &&
        examine select /sys/kernel/mm/transparent_hugepage/defrag
    setting kernel.numa_balancing \
        --why 'Automatic balancing unmaps pages to see who uses them; pinned workers already use memory of their own node.' \
        --effect 'No extra page faults. Only for hosts with more than one node.' \
        --source 'Documentation/admin-guide/sysctl/kernel.rst (numa_balancing)' &&
        on_several_nodes examine sysctl /proc/sys/kernel/numa_balancing
    setting vm.zone_reclaim_mode \
        --why 'Other values make an allocation reclaim pages of its node before it takes a free page of another one.' \
        --effect 'No stalls for reclaiming while memory is free elsewhere; it is the kernel default.' \
        --source 'Documentation/admin-guide/sysctl/vm.rst (zone_reclaim_mode)' &&
        on_several_nodes examine sysctl /proc/sys/vm/zone_reclaim_mode
    setting memory.numa_placement \
        --why 'Memory and network card of another node cost more time for each access.' \
        --effect 'Choose cores.core_list of router.toml from the node of the network card.' \
        --source 'Documentation/admin-guide/mm/numa_memory_policy.rst; numactl(8)' &&
        on_several_nodes for_each_nic_by_core_map compare_nodes
}

on_several_nodes() { # ACTION [ARGUMENT...]
    node_count=0
    for node_path in "$root"/sys/devices/system/node/node[0-9]*; do
        [ -d "$node_path" ] && node_count=$((node_count + 1))
    done
    if [ $node_count -gt 1 ]; then
        "$@"
    else
        skip 'one NUMA node'
    fi
}

compare_nodes() {
    if ! read_value "/sys/class/net/$nic/device/numa_node" || ! is_number "$value"; then
        skip 'the interface belongs to no node' "$nic"
        return
    fi
    nic_node=$value
    far_cores=
    for core in $worker_cores; do
        [ -e "$root/sys/devices/system/cpu/cpu$core/node$nic_node" ] || far_cores="$far_cores${far_cores:+,}$core"
    done
    if [ -z "$far_cores" ]; then
        finding as_wanted "$nic" '' '' "all workers on node $nic_node" "node $nic_node" '' ''
    else
        advise "workers on other nodes: cores $far_cores" "node $nic_node" 'set cores.core_list in router.toml' "$nic"
    fi
}
