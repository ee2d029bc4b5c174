# The complaints of root's nginx about their configurations, in the words of `nginx -t`.
@nginx_asked.sh@
refuse() {
    [ -n "$runs_as$doubt" ] || ask -t 2>&1 | head -n 5
}
masters refuse
:
