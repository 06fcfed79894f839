# The operator's image, for people with Docker: docker build -t REGISTRY/operator:TAG .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY instance instance
COPY webhooks webhooks
RUN for p in operator instance; do \
      CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
        -ldflags "-s -w -X main.version=$VERSION" -o /out/$p ./cmd/$p || exit 1; \
    done

FROM scratch
COPY --from=build /out/operator /operator
COPY --from=build /out/instance /instance
USER 65532:65532
ENTRYPOINT ["/operator"]
