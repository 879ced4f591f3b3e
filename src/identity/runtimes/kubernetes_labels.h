/* The labels that the kubelet gives to every container, whichever runtime keeps them. */
#pragma once

#define KUBERNETES_POD_NAME       "io.kubernetes.pod.name"
#define KUBERNETES_POD_NAMESPACE  "io.kubernetes.pod.namespace"
#define KUBERNETES_POD_UID        "io.kubernetes.pod.uid"
#define KUBERNETES_CONTAINER_NAME "io.kubernetes.container.name"
