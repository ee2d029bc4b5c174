"""The configurations that the lab writes, as texts."""

from pathlib import Path

from intop.domain.balancing import Balancing
from intop.lab import texts

FOLDER = Path("/run/intop/lab/t/host-lb")
KEYS = Path("/run/intop/lab/t/keys")


def lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()}


def test_sshd_listens_on_its_own_address_and_takes_only_the_labs_key() -> None:
    result = lines(texts.sshd_config("198.18.0.20", FOLDER, KEYS, "lb", use_pam=False))
    assert result >= {
        "ListenAddress 198.18.0.20",
        f"HostKey {KEYS}/host-lb",
        f"AuthorizedKeysFile {KEYS}/authorized_keys",
        "PermitRootLogin prohibit-password",
        "PasswordAuthentication no",
        "UsePAM no",
        "UseDNS no",
        "StrictModes yes",
        "Subsystem sftp internal-sftp",
    }


def test_sshd_uses_pam_where_the_account_is_locked() -> None:
    result = lines(texts.sshd_config("198.18.0.20", FOLDER, KEYS, "lb", use_pam=True))
    assert "UsePAM yes" in result


def test_a_locked_root_is_seen_in_the_shadow_file() -> None:
    assert texts.password_is_locked("bin:*:1::::::\nroot:!:19000:0:99999:7:::\n")
    assert texts.password_is_locked("root:!$y$j9T$x:19000:0:99999:7:::\n")
    assert not texts.password_is_locked("root:*:19000:0:99999:7:::\n")
    assert not texts.password_is_locked("toor:!:19000:0:99999:7:::\n")


def test_the_balancer_knows_all_backends_and_keeps_connections() -> None:
    text = texts.balancer_config(FOLDER, "www-data www-data", ["1.1.1.1", "2.2.2.2"], open_files=9)
    assert lines(text) >= {
        "user www-data www-data;",
        "worker_rlimit_nofile 9;",
        "server 1.1.1.1:80 max_fails=0;",
        "server 2.2.2.2:80 max_fails=0;",
        "keepalive 64;",
        "listen 80 backlog=65535;",
        "proxy_http_version 1.1;",
        'proxy_set_header Connection "";',
        "access_log off;",
    }


def test_a_balancer_may_keep_no_connection_to_backends_and_have_nginxs_own_backlog() -> None:
    settings = Balancing(upstream_keepalive=0, backlog=511)
    result = lines(texts.balancer_site(["1.1.1.1"], settings))
    assert "listen 80 backlog=511;" in result
    assert not any(line.startswith("keepalive ") for line in result)
    assert "keepalive 8;" in lines(
        texts.balancer_site(["1.1.1.1"], Balancing(upstream_keepalive=8))
    )


def test_a_balancer_may_have_few_buffers_and_more_workers_and_wait_for_its_disk() -> None:
    settings = Balancing(
        workers=2,
        proxy_buffers=4,
        proxy_buffer_kb=8,
        sndbuf_kb=32,
        access_log="disk",
        disk_iops=300,
    )
    text = texts.balancer_config(
        FOLDER, "www-data www-data", ["1.1.1.1"], open_files=9, balancing=settings
    )
    assert lines(text) >= {
        "worker_processes 2;",
        "proxy_buffer_size 8k;",
        "proxy_buffers 4 8k;",
        "listen 80 backlog=65535 sndbuf=32k;",
        f"access_log {FOLDER}/disk/access.log intop;",
        f"proxy_temp_path {FOLDER}/disk/temp-proxy;",
    }
    assert "443" not in text


def test_a_log_in_memory_is_buffered_and_workers_may_be_tied() -> None:
    settings = Balancing(access_log="memory", workers=3, server_cpus="1,3")
    text = texts.balancer_config(
        FOLDER, "www-data www-data", ["1.1.1.1"], open_files=9, balancing=settings
    )
    assert lines(text) >= {
        f"access_log {FOLDER}/memory/access.log intop buffer=64k flush=1s;",
        "worker_cpu_affinity auto 1010;",
        f"proxy_temp_path {FOLDER}/temp-proxy;",
    }


def test_a_balancer_with_tls_resumes_by_its_cache_only() -> None:
    text = texts.balancer_config(
        FOLDER, "www-data", ["1.1.1.1"], open_files=9, balancing=Balancing(tls_key_bits=2048)
    )
    assert lines(text) >= {
        "listen 443 ssl backlog=65535;",
        "listen 80 backlog=65535;",
        f"ssl_certificate {FOLDER}/tls.pem;",
        "ssl_session_tickets off;",
    }


def test_uploads_pass_both_servers_in_memory() -> None:
    balancer = texts.balancer_config(FOLDER, "www-data www-data", ["1.1.1.1"], open_files=9)
    backend = texts.backend_config(FOLDER, "www-data www-data", Path("/content"), open_files=9)
    for text in (balancer, backend):
        assert lines(text) >= {"client_max_body_size 16m;", "client_body_buffer_size 1m;"}


def test_a_backend_serves_files_and_passes_the_dynamic_path_on() -> None:
    text = texts.backend_config(FOLDER, "www-data www-data", Path("/content"), open_files=9)
    assert lines(text) >= {
        "root /content;",
        "location = /dynamic {",
        f"server unix:{FOLDER}/app.sock max_fails=0;",
        "proxy_pass http://application;",
    }


def test_files_with_waits_are_the_applications() -> None:
    words = (FOLDER, "www-data www-data", Path("/content"))
    text = texts.backend_config(*words, open_files=9, has_more=True, has_waits=True)
    assert lines(text) >= {
        "if (-f $document_root$uri.waits) { return 418; }",
        "error_page 418 = @application;",
        "location @application {",
    }
    assert text.count("proxy_pass http://application;") == 2
    without = texts.backend_config(*words, open_files=9, has_more=True)
    assert "application {" in without
    assert "@application" not in without


def test_nginx_writes_nowhere_but_in_its_folder() -> None:
    text = texts.balancer_config(FOLDER, "www-data www-data", ["1.1.1.1"], open_files=9)
    paths = [word.rstrip(";") for line in lines(text) for word in line.split() if word[0] == "/"]
    files = [path for path in paths if path not in ("/", texts.STATUS_PATH)]
    assert len(files) == 7
    assert all(path.startswith(f"{FOLDER}/") for path in files)


def test_known_hosts_leaves_the_comment_out() -> None:
    assert texts.known_hosts_line("198.18.0.10", "ssh-ed25519 AAAA intop-t\n") == (
        "198.18.0.10 ssh-ed25519 AAAA\n"
    )
