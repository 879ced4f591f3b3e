# docker build -t wattribute .          podman build -t wattribute .
# How to run it: docs/docker.md, docs/kubernetes.md.
ARG BASE=docker.io/library/debian:12-slim

FROM ${BASE} AS build
WORKDIR /src
COPY tools/setup tools/setup
RUN tools/setup build
COPY . .
RUN meson setup build -Dtests=false --prefix=/usr \
    && DESTDIR=/out meson install -C build --strip --tags runtime

FROM ${BASE}
# NVIDIA's library (libnvidia-ml.so.1) belongs to the node's driver: the NVIDIA runtime mounts it, with the
# devices, into containers that say so by these variables. No GPU is taken away from anybody by that.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=utility
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        ca-certificates libcurl3-gnutls libjansson4 libmicrohttpd12 libyaml-0-2 tzdata zlib1g \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log
COPY --from=build /out/usr/bin/wattribute /usr/bin/wattribute
# As root, because sockets of container runtimes are root's: only they know names. It needs no capability,
# and the process that talks to the network gives root up where it may. `--user 65534` works, too: then
# energy is booked to containers by their ids (docs/docker.md).
USER 0
EXPOSE 9400
# No HEALTHCHECK: there is nothing in here to make a request with, and a process that is gone is noticed
# without. Kubernetes asks /-/healthy and /-/ready by itself.
ENTRYPOINT ["/usr/bin/wattribute"]
CMD ["serve"]
