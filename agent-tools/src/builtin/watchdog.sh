# Reads what an agent starts and, when the agent is gone (then the input ends), ends what is left of it. A line each:
#   session NAME   commands with this name in their environment are the agent's     ended NAME   none of them is left
#   group NUMBER   a command and what it started                                    gone NUMBER  the group has died out
trap '' HUP INT QUIT TERM
# What was open here already is not held open. 0 is the input.
exec 3<&0 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-

watch() {
    groups=' ' sessions=' '
    while read -r what which; do
        case $what in
            session) case $sessions in *" $which "*) ;; *) sessions="$sessions$which " ;; esac ;;
            ended) case $sessions in *" $which "*) sessions="${sessions%%" $which "*} ${sessions#*" $which "}" ;; esac ;;
            group) groups="$groups$which " ;;
            gone) case $groups in *" $which "*) groups="${groups%%" $which "*} ${groups#*" $which "}" ;; esac ;;
        esac
    done
    set --
    for name in $sessions; do set -- "$@" -e "$name-"; done
    [ $# -gt 0 ] || exit 0
    for group in $groups; do
        # A process of this number that does not carry the name is another one: numbers are used again.
        [ -e "/proc/$group/environ" ] && ! grep -qsF "$@" "/proc/$group/environ" && continue
        kill -s KILL -- "-$group"
    done
    sweep "$@"
    # What was being started shows its environment only now.
    sleep 0.2 || sleep 1
    sweep "$@"
}

# Kills what carries a name, and what that starts meanwhile.
sweep() {
    tries=0
    while [ $tries -lt 10 ]; do
        found=$(grep -lsF "$@" /proc/[0-9]*/environ)
        [ -n "$found" ] || return
        for file in $found; do
            number=${file#/proc/}
            kill -s KILL "${number%/environ}"
        done
        tries=$((tries + 1))
    done
}

# Nobody's child: the agent has none to wait for.
watch <&3 3<&- >/dev/null 2>&1 &
