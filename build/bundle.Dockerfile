# Written by `make bundle`: change what it is written from instead.
# The bundle's image: nothing runs in it, OLM reads it. To build it:
#   git archive HEAD | docker build -f build/bundle.Dockerfile -t dljob-operator-bundle -
FROM scratch

LABEL operators.operatorframework.io.bundle.mediatype.v1=registry+v1
LABEL operators.operatorframework.io.bundle.manifests.v1=manifests/
LABEL operators.operatorframework.io.bundle.metadata.v1=metadata/
LABEL operators.operatorframework.io.bundle.package.v1=dljob-operator
LABEL operators.operatorframework.io.bundle.channels.v1=candidate
LABEL operators.operatorframework.io.bundle.channel.default.v1=candidate

# the definitions from where they are: the bundle's own are links, which would lead nowhere in the image
COPY deploy/olm/manifests/dljob-operator* /manifests/
COPY crds/*.yaml /manifests/
COPY deploy/olm/metadata /metadata/
