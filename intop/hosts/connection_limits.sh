# A word and its numbers on each line. By cat: the kernel gives a sysctl in one read.
tell() { said=$(cat "/proc/sys/net/$2" 2>/dev/null) && echo "$1" $said; }
tell ports ipv4/ip_local_port_range
tell reserved ipv4/ip_local_reserved_ports
tell reuse ipv4/tcp_tw_reuse
tell tracked netfilter/nf_conntrack_count
tell tracked_most netfilter/nf_conntrack_max
tell tracked_s netfilter/nf_conntrack_tcp_timeout_time_wait
exit 0
