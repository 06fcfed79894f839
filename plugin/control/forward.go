package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Forward is a Dialer through the API server, as kubectl port-forward: it needs the right to create pods/portforward.
func Forward(config *rest.Config) (Dialer, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return func(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
		request := client.Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward")
		dialer, err := upgrade(config, request)
		if err != nil {
			return nil, err
		}
		return open(ctx, dialer, port)
	}, nil
}

// upgrade prefers WebSockets, and falls back to what older API servers and proxies know.
func upgrade(config *rest.Config, request *rest.Request) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, request.URL())
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(request.URL(), config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// open is a connection to a port, or the end of ctx: the dialer knows no contexts.
func open(ctx context.Context, dialer httpstream.Dialer, port int) (net.Conn, error) {
	type opened struct {
		conn net.Conn
		err  error
	}
	result := make(chan opened, 1)
	go func() {
		c, err := dial(dialer, port)
		if err == nil && ctx.Err() != nil {
			_ = c.Close()
			return
		}
		result <- opened{c, err}
	}()
	select {
	case r := <-result:
		return r.conn, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func dial(dialer httpstream.Dialer, port int) (net.Conn, error) {
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, cause(err)
	}
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	failure, err := connection.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the way into the Pod: %w", err), connection.Close())
	}
	_ = failure.Close() // nothing is sent on it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the way into the Pod: %w", err), connection.Close())
	}
	s := &stream{Stream: data, connection: connection}
	go s.watch(failure)
	return s, nil
}

// cause is what the API server said, which the error of an upgrade hides from errors.As.
func cause(err error) error {
	if upgrade, is := errors.AsType[*httpstream.UpgradeFailureError](err); is {
		return upgrade.Cause
	}
	return err
}

// stream is a way into a Pod as a connection.
type stream struct {
	httpstream.Stream
	connection httpstream.Connection
}

// watch ends the connection when the node says that it leads nowhere.
func (s *stream) watch(failure io.Reader) {
	if text, err := io.ReadAll(failure); err != nil || len(strings.TrimSpace(string(text))) > 0 {
		_ = s.Close()
	}
}

func (s *stream) Close() error {
	return errors.Join(s.Reset(), s.connection.Close())
}

// Its ends have no addresses, and nobody sets deadlines: who asks ends the connection instead.
func (s *stream) LocalAddr() net.Addr              { return nowhere{} }
func (s *stream) RemoteAddr() net.Addr             { return nowhere{} }
func (s *stream) SetDeadline(time.Time) error      { return nil }
func (s *stream) SetReadDeadline(time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

type nowhere struct{}

func (nowhere) Network() string { return "portforward" }
func (nowhere) String() string  { return "portforward" }
