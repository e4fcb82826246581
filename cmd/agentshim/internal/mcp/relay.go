package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// The headers of the HTTP transport that are more than bytes to a proxy.
const (
	headerSession = "Mcp-Session-Id"
	headerParam   = "Mcp-Param-"
	typeJSON      = "application/json"
	typeStream    = "text/event-stream"
)

// A Relay is the proxy before a server that speaks over HTTP. Whatever path is
// asked for is asked for at the server.
type Relay struct {
	Guard *Guard
	// Target is the server. Its path says only which requests Headers go with.
	Target *url.URL
	// Token is what clients must show, at the begin of the path or in [TokenHeader], since
	// other users of the machine reach the listener too; empty: everyone is served.
	Token string
	// AskTimeout is how long a person may take to answer; 0: [DefaultAskTimeout].
	AskTimeout time.Duration
	// Headers are put over those of clients, such as a server's Authorization, in
	// requests for the target's own path. What else is on its host they open to nobody.
	Headers http.Header
	// Transport reaches the server; nil: one of its own.
	Transport http.RoundTripper

	once     sync.Once
	desk     *desk
	room     *room
	sessions sessions
}

// NewTransport is how servers are reached: with no more between than there must be.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
	}
}

// hop are the headers that are about one connection.
func hop() []string {
	return []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}
}

func (x *Relay) begin() {
	x.once.Do(func() {
		x.room = &room{most: maxRoom}
		x.sessions.room = x.room
		x.desk = newDesk(&lineWriter{w: io.Discard}, x.AskTimeout)
		if x.Transport == nil {
			x.Transport = NewTransport()
		}
	})
}

// ServeHTTP passes one request on.
func (x *Relay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.begin()
	if !local(r.Host) || !localOrigin(r.Header.Get("Origin")) {
		http.Error(w, "this proxy serves only this machine; Host and Origin must be localhost", http.StatusForbidden)
		return
	}
	if r = x.admit(r); r == nil {
		// No 401: clients would look for a server that lets them in.
		http.Error(w, "this proxy serves only its user; use the URL that agentshim mcp printed, or send the token in the header "+TokenHeader, http.StatusForbidden)
		return
	}
	if r.Header.Get("Content-Encoding") != "" {
		http.Error(w, "the proxy must read the calls in the body; send it without a Content-Encoding", http.StatusUnsupportedMediaType)
		return
	}
	if !utf8Only(r.Header) {
		http.Error(w, "the proxy must read the calls in the body; send it in UTF-8, and name no other charset", http.StatusUnsupportedMediaType)
		return
	}
	in := &metered{Reader: http.MaxBytesReader(w, r.Body, MaxMessage), room: x.room}
	defer in.done()
	body, err := io.ReadAll(in)
	if errors.Is(err, errNoRoom) {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		x.Guard.say("dropped a message of the client that is longer than 64 MiB")
		http.Error(w, "the message is longer than the limit of 64 MiB; send less at once", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		return // the client has gone
	}
	v := &visit{x: x, w: w, r: r, session: x.sessions.get(r.Header.Get(headerSession))}
	if len(body) == 0 {
		v.pass(nil)
		return
	}
	v.post(body)
}

// utf8Only reports whether a server reads a body as it is judged. There are those
// that decode what the client says.
func utf8Only(h http.Header) bool {
	parts := strings.FieldsFunc(strings.ToLower(strings.Join(h.Values("Content-Type"), ",")), func(r rune) bool { return r == ';' || r == ',' })
	for _, part := range parts {
		charset, ok := strings.CutPrefix(strings.TrimSpace(part), "charset")
		if name := strings.Trim(charset, " \t=\"'"); ok && name != "utf-8" && name != "utf8" {
			return false
		}
	}
	return true
}

// local reports whether a host is this machine.
func local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func localOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && local(u.Host)
}

// upstream is the client's request as the server gets it.
func (x *Relay) upstream(r *http.Request, body []byte) (*http.Request, error) {
	u := *r.URL
	u.Scheme, u.Host = x.Target.Scheme, x.Target.Host
	out, err := http.NewRequestWithContext(r.Context(), r.Method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	out.Header = r.Header.Clone()
	for _, h := range append(hop(), slices.Collect(listed(r.Header.Get("Connection")))...) {
		out.Header.Del(h)
	}
	out.Header.Set("Accept-Encoding", "identity")
	if o := out.Header.Get("Origin"); o != "" {
		out.Header.Set("Origin", x.Target.Scheme+"://"+x.Target.Host)
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header.Set("User-Agent", "") // else the library says something
	}
	if r.URL.Path == x.Target.Path || r.URL.Path == "/" && x.Target.Path == "" {
		maps.Copy(out.Header, x.Headers)
	}
	if body != nil {
		setBody(out, body)
	}
	return out, nil
}

func listed(header string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range strings.SplitSeq(header, ",") {
			if name = strings.TrimSpace(name); name != "" && !yield(name) {
				return
			}
		}
	}
}

// Serve serves the relay on a listener until ctx ends.
func (x *Relay) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: x, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("listening on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if s.Shutdown(last) != nil {
		_ = s.Close() // streams that go on for ever
	}
	return nil
}
