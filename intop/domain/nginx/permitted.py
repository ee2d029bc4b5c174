"""Which of nginx's directives may be tuned at all. A leaf: `intop.domain.parameter` asks it."""

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

PREFIX = "nginx:"
"""What the key of a directive begins with, as in `nginx:http.sendfile`. No sysctl has a colon."""

ALLOWED: tuple[str, ...] = (
    *("main.worker_processes", "main.worker_cpu_affinity", "main.worker_priority"),
    *("main.worker_rlimit_nofile", "main.timer_resolution", "main.pcre_jit"),
    "main.thread_pool.*",
    *("events.worker_connections", "events.multi_accept", "events.accept_mutex*"),
    *("listen.backlog", "listen.reuseport", "listen.deferred", "listen.fastopen"),
    *("listen.so_keepalive", "listen.rcvbuf", "listen.sndbuf"),
    *("http.sendfile*", "http.tcp_nopush", "http.tcp_nodelay", "http.postpone_output"),
    *("http.output_buffers.*", "http.keepalive_timeout", "http.keepalive_requests"),
    *("http.keepalive_time", "http.reset_timedout_connection", "http.lingering_*"),
    *("http.open_file_cache*", "http.aio", "http.aio_write"),
    *("http.directio", "http.read_ahead", "http.client_header_buffer_size"),
    *("http.client_body_buffer_size", "http.connection_pool_size", "http.request_pool_size"),
    *("http.gzip", "http.gzip_comp_level", "http.gzip_min_length", "http.gzip_buffers.*"),
    *("http.access_log", "http.access_log.buffer", "http.access_log.flush"),
    *("http.ssl_session_cache", "http.ssl_session_timeout", "http.ssl_session_tickets"),
    *("http.ssl_buffer_size", "http.http2_chunk_size", "http.http2_max_concurrent_streams"),
    *("http.proxy_http_version", "http.proxy_buffering", "http.proxy_request_buffering"),
    *("http.proxy_buffers.*", "http.proxy_buffer_size", "http.proxy_busy_buffers_size"),
    *("http.proxy_temp_file_write_size", "http.proxy_max_temp_file_size"),
    "http.proxy_socket_keepalive",
    *("upstream.keepalive", "upstream.keepalive_requests", "upstream.keepalive_time"),
    "upstream.keepalive_timeout",
)
"""Directives and options (glob patterns, without PREFIX) that a space may have at all."""

BY_NAME: dict[str, str] = {
    "http.access_log": "off, nobody can tell later who asked for what",
    "http.gzip": "changes what is served: other bytes, weak ETags, and secrets in compressed pages "
    "over TLS can be guessed (BREACH)",
}
"""Denied unless the study allows the key by its name: with the same patterns, and why."""

DENIED: dict[str, str] = {
    "*.root": "decides what is served",
    "*.alias": "decides what is served",
    "*.index": "decides what is served",
    "*.autoindex*": "decides what is served, and shows names of files",
    "*.try_files": "decides what is served",
    "*.return": "decides what is served",
    "*.rewrite*": "decides what is served",
    "*.error_page": "decides what is served",
    "*.default_type": "decides as what browsers take an answer",
    "*.types*": "decides as what browsers take an answer",
    "*.charset*": "decides as what browsers take an answer",
    "*.add_header*": "decides what clients are told, security policies among it",
    "*.expires": "decides how long clients keep an answer",
    "*.etag": "decides when clients take an old answer for a new one",
    "*.if_modified_since": "decides when clients take an old answer for a new one",
    "*.sub_filter*": "changes what is served",
    "*.gzip_types": "changes what is served: other bytes, and secrets can be guessed (BREACH)",
    "*.gzip_proxied": "changes what is served, and what caches keep for others",
    "*.gzip_vary": "decides what caches give to whom",
    "*.gzip_static": "serves other files",
    "*.gunzip*": "changes what is served",
    "*.max_ranges": "decides which requests are answered",
    "*.chunked_transfer_encoding": "changes what old clients are served",
    "*.*_pass": "decides which server answers",
    "*.*_cache": "serves old answers, and one user's answer to another",
    "*.*_cache_*": "serves old answers, and one user's answer to another",
    "*.*_store*": "serves old answers",
    "*.*_hide_header": "decides what clients are told",
    "*.*_pass_header": "decides what clients are told",
    "*.*_ignore_headers": "decides what caches keep, against the answer's own words",
    "*.*_set_header": "decides what backends are told, also about who asks",
    "*.*_set_body": "decides what backends are told",
    "*.*_next_upstream*": "sends a request twice, an order or a payment, too",
    "*.*_ssl_*": "decides whom a backend's certificate must name",
    "*.*_bind": "decides from which address backends are asked",
    "*.*_intercept_errors": "decides what is served",
    "*.*_redirect": "decides where clients are sent",
    "*.proxy_cookie_*": "decides who gets a cookie",
    "*.*_limit_rate*": "decides who gets how much",
    "*.proxy_*_timeout": "decides which requests fail: a trial would gain by giving up early",
    "*.fastcgi_*": "belongs to another way to backends, which no trial has measured",
    "*.uwsgi_*": "belongs to another way to backends, which no trial has measured",
    "*.scgi_*": "belongs to another way to backends, which no trial has measured",
    "*.grpc_*": "belongs to another way to backends, which no trial has measured",
    "*.limit_*": "decides who gets how much, and protects against floods",
    "*.allow": "decides who may see it",
    "*.deny": "decides who may see it",
    "*.satisfy": "decides who may see it",
    "*.auth_*": "decides who may see it",
    "*.internal": "decides who may see it",
    "*.secure_link*": "decides who may see it",
    "*.valid_referers": "decides who may see it",
    "*.disable_symlinks": "decides which files may be seen",
    "*.dav_*": "lets clients write",
    "*.real_ip_*": "decides who is taken for whom, in logs and in access rules",
    "*.set_real_ip_from": "decides who is taken for whom, in logs and in access rules",
    "*.server_name*": "decides which site answers, and what a client is told of the server",
    "*.server_tokens": "tells attackers the version",
    "*.server": "decides which backends there are",
    "*.resolver*": "decides which backends there are",
    "upstream.zone": "decides which backends there are, where they are set at run time",
    "upstream.hash": "decides which backend keeps whose session",
    "upstream.ip_hash": "decides which backend keeps whose session",
    "upstream.least_*": "decides which backend answers, for reasons that a trial does not see",
    "upstream.random": "decides which backend answers, for reasons that a trial does not see",
    "upstream.sticky*": "decides which backend keeps whose session",
    "*.client_max_body_size": "decides which requests are refused",
    "*.client_*_timeout": "decides which clients are dropped, and protects against slow attacks",
    "*.large_client_header_buffers*": "decides which requests are refused",
    "*.ignore_invalid_headers": "lets requests pass that hide in others",
    "*.underscores_in_headers": "lets requests pass that hide in others",
    "*.merge_slashes": "decides which rules a path meets",
    "*.send_timeout": "decides which clients are dropped",
    "*.keepalive_disable": "decides how old browsers are answered",
    "*.ssl": "decides whether connections are encrypted",
    "*.ssl_protocols": "decides how well connections are encrypted",
    "*.ssl_ciphers": "decides how well connections are encrypted",
    "*.ssl_prefer_server_ciphers": "decides how well connections are encrypted",
    "*.ssl_ecdh_curve": "decides how well connections are encrypted",
    "*.ssl_dhparam": "decides how well connections are encrypted",
    "*.ssl_conf_command": "decides how well connections are encrypted",
    "*.ssl_early_data": "lets an attacker repeat a request",
    "*.ssl_session_ticket_key": "is a secret, and who has it can read connections",
    "*.ssl_certificate*": "is a secret, or says who the server is",
    "*.ssl_password_file": "is a secret",
    "*.ssl_client_certificate": "decides who may see it",
    "*.ssl_trusted_certificate": "decides whom the server believes",
    "*.ssl_verify_*": "decides who may see it",
    "*.ssl_crl": "decides who may see it",
    "*.ssl_ocsp*": "decides who may see it",
    "*.ssl_stapling*": "decides what clients are told of the certificate",
    "*.ssl_reject_handshake": "decides who may see it",
    "*.http2": "decides which protocol clients are offered",
    "*.http3": "decides which protocol clients are offered",
    "listen.default_server": "decides which site answers",
    "listen.ssl": "decides whether connections are encrypted",
    "listen.http2": "decides which protocol clients are offered",
    "listen.quic": "decides which protocol clients are offered",
    "listen.proxy_protocol": "decides who is taken for whom, in logs and in access rules",
    "listen.address": "decides who can reach it",
    "listen.ipv6only": "decides who can reach it",
    "listen.bind": "decides who can reach it",
    "*.error_log": "hides what went wrong",
    "*.log_format": "decides what is logged for audit",
    "*.log_not_found": "hides what went wrong",
    "*.log_subrequest": "decides what is logged for audit",
    "*.access_log.path": "decides where it is logged for audit",
    "*.access_log.format": "decides what is logged for audit",
    "*.access_log.if": "decides what is logged for audit",
    "*.*_log_path": "decides where it is logged for audit",
    "main.user": "decides what a captured worker may do",
    "main.load_module": "runs other code",
    "main.env": "hands secrets to other code",
    "main.daemon": "lets the service manager lose nginx",
    "main.master_process": "is for debugging, and leaves nginx without a master",
    "main.pid": "lets the service manager lose nginx",
    "main.lock_file": "lets two nginx disturb each other",
    "main.ssl_engine": "runs other code",
    "main.working_directory": "decides where memory is dumped, secrets with it",
    "main.worker_rlimit_core": "dumps memory, secrets with it",
    "main.worker_shutdown_timeout": "cuts off the clients of a worker that a reload has replaced",
    "main.debug_points": "stops nginx at faults",
    "events.debug_connection": "floods the log",
    "events.use": "the kernel's best is taken already",
    "*.include": "brings any other directive",
    "*.lua_*": "runs other code",
    "*.*_by_lua*": "runs other code",
    "*.js_*": "runs other code",
    "*.perl_*": "runs other code",
}
"""Directives and options (glob patterns, without PREFIX) that no configuration file can bring into
a space, and why. A broad pattern here does not mean what ALLOWED has: `*.*_cache` is about answers,
not about `open_file_cache`."""


def is_directive(key: str) -> bool:
    """Whether a key is a directive's, and no sysctl's."""
    return key.startswith(PREFIX)


def split_by_kind(
    values: Mapping[str, str],
) -> tuple[dict[str, str], dict[str, str]]:
    """The sysctls and the directives of a configuration."""
    directives = {key: value for key, value in values.items() if key.startswith(PREFIX)}
    return {key: value for key, value in values.items() if key not in directives}, directives


def denied(key: str) -> str | None:
    """Why a directive must not be tuned whatever a study says, or None."""
    name = key.removeprefix(PREFIX)
    if any(fnmatchcase(name, pattern) for pattern in ALLOWED):
        return None
    return next((why for p, why in DENIED.items() if fnmatchcase(name, p)), None)


def barred(key: str, by_name: Collection[str] = ()) -> str:
    """Why a directive can't be tuned, such as `on the deny list: ...`; "" when it may be.

    `by_name` are the keys that the study allows by their names.
    """
    if reason := denied(key):
        return f"on the deny list: {reason}"
    name = key.removeprefix(PREFIX)
    if not any(fnmatchcase(name, pattern) for pattern in ALLOWED):
        return "not on the list of directives that may be tuned"
    if name in BY_NAME and key not in by_name:
        return f"on the deny list unless the study allows it by its name: {BY_NAME[name]}"
    return ""
