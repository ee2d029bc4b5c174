"""The directives of nginx that may be tuned at all. A leaf: `intop.domain.parameter` asks it."""

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

PREFIX = "nginx:"
"""The beginning of a directive's key, as in `nginx:http.sendfile`. No sysctl has a colon."""

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

_DENIED_SINCE: dict[str, tuple[str, ...]] = {
    "decides what is served": (
        *("*.root", "*.alias", "*.index", "*.try_files", "*.return", "*.rewrite*", "*.error_page"),
        "*.*_intercept_errors",
    ),
    "decides what is served, and shows names of files": ("*.autoindex*",),
    "decides as what browsers take an answer": ("*.default_type", "*.types*", "*.charset*"),
    "decides what clients are told, security policies among it": ("*.add_header*",),
    "decides how long clients keep an answer": ("*.expires",),
    "decides when clients take an old answer for a new one": ("*.etag", "*.if_modified_since"),
    "changes what is served": ("*.sub_filter*", "*.gunzip*"),
    "changes what is served: other bytes, and secrets can be guessed (BREACH)": ("*.gzip_types",),
    "changes what is served, and what caches keep for others": ("*.gzip_proxied",),
    "decides what caches give to whom": ("*.gzip_vary",),
    "serves other files": ("*.gzip_static",),
    "decides which requests are answered": ("*.max_ranges",),
    "changes what old clients are served": ("*.chunked_transfer_encoding",),
    "decides which server answers": ("*.*_pass",),
    "serves old answers, and one user's answer to another": ("*.*_cache", "*.*_cache_*"),
    "serves old answers": ("*.*_store*",),
    "decides what clients are told": ("*.*_hide_header", "*.*_pass_header"),
    "decides what caches keep, against the answer's own words": ("*.*_ignore_headers",),
    "decides what backends are told, also about who asks": ("*.*_set_header",),
    "decides what backends are told": ("*.*_set_body",),
    "sends a request twice, an order or a payment, too": ("*.*_next_upstream*",),
    "decides whom a backend's certificate must name": ("*.*_ssl_*",),
    "decides from which address backends are asked": ("*.*_bind",),
    "decides where clients are sent": ("*.*_redirect",),
    "decides who gets a cookie": ("*.proxy_cookie_*",),
    "decides who gets how much": ("*.*_limit_rate*",),
    "decides which requests fail: a trial would gain by giving up early": ("*.proxy_*_timeout",),
    "belongs to another way to backends, which no trial has measured": (
        *("*.fastcgi_*", "*.uwsgi_*", "*.scgi_*", "*.grpc_*"),
    ),
    "decides who gets how much, and protects against floods": ("*.limit_*",),
    "decides who may see it": (
        *("*.allow", "*.deny", "*.satisfy", "*.auth_*", "*.internal", "*.secure_link*"),
        *("*.valid_referers", "*.ssl_client_certificate", "*.ssl_verify_*", "*.ssl_crl"),
        *("*.ssl_ocsp*", "*.ssl_reject_handshake"),
    ),
    "decides which files may be seen": ("*.disable_symlinks",),
    "lets clients write": ("*.dav_*",),
    "decides who is taken for whom, in logs and in access rules": (
        *("*.real_ip_*", "*.set_real_ip_from", "listen.proxy_protocol"),
    ),
    "decides which site answers, and what a client is told of the server": ("*.server_name*",),
    "tells attackers the version": ("*.server_tokens",),
    "decides which backends there are": ("*.server", "*.resolver*"),
    "decides which backends there are, where they are set at run time": ("upstream.zone",),
    "decides which backend keeps whose session": (
        *("upstream.hash", "upstream.ip_hash", "upstream.sticky*"),
    ),
    "decides which backend answers, for reasons that a trial does not see": (
        *("upstream.least_*", "upstream.random"),
    ),
    "decides which requests are refused": (
        *("*.client_max_body_size", "*.large_client_header_buffers*"),
    ),
    "decides which clients are dropped, and protects against slow attacks": ("*.client_*_timeout",),
    "lets requests pass that hide in others": (
        *("*.ignore_invalid_headers", "*.underscores_in_headers"),
    ),
    "decides which rules a path meets": ("*.merge_slashes",),
    "decides which clients are dropped": ("*.send_timeout",),
    "decides how old browsers are answered": ("*.keepalive_disable",),
    "decides whether connections are encrypted": ("*.ssl", "listen.ssl"),
    "decides how well connections are encrypted": (
        *("*.ssl_protocols", "*.ssl_ciphers", "*.ssl_prefer_server_ciphers", "*.ssl_ecdh_curve"),
        *("*.ssl_dhparam", "*.ssl_conf_command"),
    ),
    "lets an attacker repeat a request": ("*.ssl_early_data",),
    "is a secret, and who has it can read connections": ("*.ssl_session_ticket_key",),
    "is a secret, or says who the server is": ("*.ssl_certificate*",),
    "is a secret": ("*.ssl_password_file",),
    "decides whom the server believes": ("*.ssl_trusted_certificate",),
    "decides what clients are told of the certificate": ("*.ssl_stapling*",),
    "decides which protocol clients are offered": (
        *("*.http2", "*.http3", "listen.http2", "listen.quic"),
    ),
    "decides which site answers": ("listen.default_server",),
    "decides who can reach it": ("listen.address", "listen.ipv6only", "listen.bind"),
    "hides what went wrong": ("*.error_log", "*.log_not_found"),
    "decides what is logged for audit": (
        *("*.log_format", "*.log_subrequest", "*.access_log.format", "*.access_log.if"),
    ),
    "decides where it is logged for audit": ("*.access_log.path", "*.*_log_path"),
    "decides what a captured worker may do": ("main.user",),
    "runs other code": (
        *("main.load_module", "main.ssl_engine", "*.lua_*", "*.*_by_lua*", "*.js_*", "*.perl_*"),
    ),
    "hands secrets to other code": ("main.env",),
    "lets the service manager lose nginx": ("main.daemon", "main.pid"),
    "is for debugging, and leaves nginx without a master": ("main.master_process",),
    "lets two nginx disturb each other": ("main.lock_file",),
    "decides where memory is dumped, secrets with it": ("main.working_directory",),
    "dumps memory, secrets with it": ("main.worker_rlimit_core",),
    "cuts off the clients of a worker that a reload has replaced": (
        "main.worker_shutdown_timeout",
    ),
    "stops nginx at faults": ("main.debug_points",),
    "floods the log": ("events.debug_connection",),
    "the kernel's best is taken already": ("events.use",),
    "brings any other directive": ("*.include",),
}
DENIED: dict[str, str] = {
    pattern: why for why, patterns in _DENIED_SINCE.items() for pattern in patterns
}
"""Directives and options (glob patterns, without PREFIX) that no configuration file can bring into
a space, and why. A broad pattern here does not mean what ALLOWED has: `*.*_cache` is about answers,
not about `open_file_cache`."""


def is_directive(key: str) -> bool:
    """Return whether a key is a directive's, and no sysctl's."""
    return key.startswith(PREFIX)


def split_by_kind(
    values: Mapping[str, str],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the sysctls and the directives of a configuration."""
    directives = {key: value for key, value in values.items() if key.startswith(PREFIX)}
    return {key: value for key, value in values.items() if key not in directives}, directives


def denied(key: str) -> str | None:
    """Return why a directive must not be tuned whatever a study says, or None."""
    name = key.removeprefix(PREFIX)
    if any(fnmatchcase(name, pattern) for pattern in ALLOWED):
        return None
    return next((why for p, why in DENIED.items() if fnmatchcase(name, p)), None)


def barred(key: str, by_name: Collection[str] = ()) -> str:
    """Return why a directive can't be tuned, such as `on the deny list: ...`; "" when it may be.

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
