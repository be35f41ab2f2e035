"""Addresses where no Ray cluster answers, and a missing extra: one line, within a stated time."""

import socket
import sys
import time

import pytest

from lgcn.errors import UsageError
from lgcn.workers.ray_cluster import ClusterError, check_address, import_ray, ray_cluster


@pytest.mark.parametrize(
    "address",
    [
        "",
        "head",
        "head:",
        ":6379",
        "ray://head:10001",
        "http://head:6379",
        "head:six",
        "head:65536",
    ],
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="address must be HOST:PORT"):
        check_address(address)


@pytest.mark.parametrize("address", ["auto", "head:6379", "10.0.0.1:6379", "[::1]:6379"])
def test_addresses_of_a_head_node_pass(address: str) -> None:
    check_address(address)


def test_an_address_where_nothing_listens_is_one_line_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"  # bound, but nobody accepts
        started = time.monotonic()
        with (
            pytest.raises(ClusterError, match=f"{address} within 20 s") as error,
            ray_cluster(address),
        ):
            pass
    assert time.monotonic() - started < 15
    assert "\n" not in str(error.value)


def test_a_port_that_is_not_rays_is_one_line_within_the_time_limit() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        with (
            pytest.raises(ClusterError, match=f"{address} within 2 s") as error,
            ray_cluster(address, seconds=2),
        ):
            pass
    assert time.monotonic() - started < 20
    assert "\n" not in str(error.value)


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'lgcn\[ray\]'"), ray_cluster():
        pass


def test_an_incomplete_extra_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.train", None)
    with pytest.raises(UsageError, match=r"pip install 'lgcn\[ray\]'"):
        import_ray()
