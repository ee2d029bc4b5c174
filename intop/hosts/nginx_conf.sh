# The configurations of root's nginx in the shell's network namespace, each after a line `nginx_conf`.
#
# With the options that each was started with, which it shows in its title. One that can't be shown is
# empty. Root is needed. As `nginx -t` does, it opens nginx's logs, and changes nothing.
@nginx_asked.sh@
show() {
    [ -z "$runs_as$doubt" ] || return
    echo nginx_conf
    ask -T
}
masters show
:
