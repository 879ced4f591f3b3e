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
# devices, into containers with these variables. This reserves no GPU.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=utility
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        ca-certificates libcurl3-gnutls libjansson4 libmicrohttpd12 libncursesw6 libyaml-0-2 tzdata zlib1g \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log
COPY --from=build /out/usr/bin/wattribute /usr/bin/wattribute
# As root, because the sockets of container runtimes, which provide names, belong to root. SETUID, SETGID and KILL are the
# only capabilities in use: the processes that use the network drop root, and are ended if they hang. `--user 65534` works too: energy is then
# booked to containers by id (docs/docker.md).
USER 0
# Mount a volume here, and counters survive a new container, too (docs/docker.md).
ENV STATE_DIRECTORY=/var/lib/wattribute
RUN mkdir -m 0700 /var/lib/wattribute
EXPOSE 9400
# No HEALTHCHECK: the image has no HTTP client, and Docker does not restart an unhealthy container. Kubernetes probes
# /-/healthy and /-/ready itself.
ENTRYPOINT ["/usr/bin/wattribute"]
CMD ["serve"]
