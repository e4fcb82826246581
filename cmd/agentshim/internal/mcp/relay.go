package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/peer"
)

// TokenHeader is where a client may send the relay's token, instead of in the path.
const TokenHeader = "Hook-Token"

const (
	wellKnown     = "/.well-known/" // begins the paths of public metadata
	maxRelayBytes = 512 << 20       // bounds the memory for calls, messages and answers of a [Relay]
)

// A Relay is the proxy in front of a server that serves MCP over HTTP, at the same paths.
type Relay struct {
	Guard *Guard
	// Target is the server. Its path selects the requests that get Headers.
	Target *url.URL
	// Token is what clients must send, as the first part of the path or in [TokenHeader], because other users
	// reach the listener, too; empty: nothing.
	Token string
	// AskTimeout limits the time for a person's answer; 0: [DefaultAskTimeout].
	AskTimeout time.Duration
	// Headers replace those of clients, such as Authorization, in requests for the target's own path only.
	Headers http.Header

	once        sync.Once
	transport   *http.Transport
	elicitation *elicitation
	limit       *semaphore.Weighted
	sessions    sessions
}

// newTransport returns a transport that changes nothing in what it transports.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
	}
}

func (x *Relay) setup() {
	x.once.Do(func() {
		x.limit = semaphore.NewWeighted(maxRelayBytes)
		x.sessions.guard, x.sessions.limit = x.Guard, x.limit
		x.elicitation = newElicitation(x.AskTimeout)
		x.transport = newTransport()
	})
}

// ServeHTTP passes one request on.
func (x *Relay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.setup()
	if !peer.IsLocal(r.Host) || !isLocalOrigin(r.Header.Get("Origin")) {
		http.Error(w, "this proxy serves only this machine; Host and Origin must be localhost", http.StatusForbidden)
		return
	}
	if r = x.admit(r); r == nil {
		// Not 401, after which clients would look for an authorization server.
		http.Error(w, "this proxy serves only its user; use the URL that agentshim mcp printed, or send the token in the header "+TokenHeader, http.StatusForbidden)
		return
	}
	if r.Header.Get("Content-Encoding") != "" {
		http.Error(w, "the proxy must read the calls in the body; send it without a Content-Encoding", http.StatusUnsupportedMediaType)
		return
	}
	if !isUTF8(r.Header) {
		http.Error(w, "the proxy must read the calls in the body; send it in UTF-8, and name no other charset", http.StatusUnsupportedMediaType)
		return
	}
	in := &limitedReader{Reader: http.MaxBytesReader(w, r.Body, MaxMessage), limit: x.limit}
	defer in.release()
	body, err := io.ReadAll(in)
	if errors.Is(err, errMemory) {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		x.Guard.log("dropped a message of the client that is longer than 64 MiB")
		http.Error(w, "the message is longer than the limit of 64 MiB; send less at once", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		return // the client has gone
	}
	q := &relayRequest{relay: x, w: w, r: r, session: x.sessions.get(r.Header.Get(headerSession))}
	if len(body) == 0 {
		q.pass(nil)
		return
	}
	q.post(body)
}

// isUTF8 reports whether no other charset is named, in which a server would read another body.
func isUTF8(h http.Header) bool {
	parts := strings.FieldsFunc(strings.ToLower(strings.Join(h.Values("Content-Type"), ",")), func(r rune) bool { return r == ';' || r == ',' })
	for _, part := range parts {
		charset, ok := strings.CutPrefix(strings.TrimSpace(part), "charset")
		if name := strings.Trim(charset, " \t=\"'"); ok && name != "utf-8" && name != "utf8" {
			return false
		}
	}
	return true
}

func isLocalOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && peer.IsLocal(u.Host)
}

// admit returns a request without the relay's token; nil: it has none. Public metadata needs none, since
// clients read it at paths of their own.
func (x *Relay) admit(r *http.Request) *http.Request {
	if x.Token == "" {
		return r
	}
	in := r.Clone(r.Context())
	in.Header.Del(TokenHeader)
	if x.isToken(r.Header.Get(TokenHeader)) {
		return in
	}
	for _, prefix := range []string{"/", wellKnown + "oauth-protected-resource/", wellKnown + "oauth-authorization-server/", wellKnown + "openid-configuration/"} {
		if u, ok := x.withoutToken(r.URL, prefix); ok {
			in.URL = u
			return in
		}
	}
	isPublic := r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, wellKnown) && path.Clean(r.URL.Path) == r.URL.Path
	if isPublic && !strings.HasPrefix(x.Target.Path, wellKnown) {
		return in
	}
	return nil
}

// withoutToken returns a URL without the token after a prefix of its path, if it is there.
func (x *Relay) withoutToken(u *url.URL, prefix string) (*url.URL, bool) {
	rest, ok := strings.CutPrefix(u.Path, prefix)
	token, after, _ := strings.Cut(rest, "/")
	if !ok || !x.isToken(token) {
		return nil, false
	}
	out := *u
	out.Path, out.RawPath = prefix+after, ""
	if raw, ok := strings.CutPrefix(u.RawPath, prefix+token+"/"); ok {
		out.RawPath = prefix + raw
	}
	return &out, true
}

func (x *Relay) isToken(s string) bool {
	got, want := sha256.Sum256([]byte(s)), sha256.Sum256([]byte(x.Token))
	return s != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// hopHeaders returns the headers that are for one connection only.
func hopHeaders() []string {
	return []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}
}

// upstream returns a client's request as the server gets it.
func (x *Relay) upstream(r *http.Request, body []byte) (*http.Request, error) {
	u := *r.URL
	u.Scheme, u.Host = x.Target.Scheme, x.Target.Host
	out, err := http.NewRequestWithContext(r.Context(), r.Method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	out.Header = r.Header.Clone()
	for _, name := range append(hopHeaders(), strings.Split(r.Header.Get("Connection"), ",")...) {
		out.Header.Del(strings.TrimSpace(name))
	}
	out.Header.Set("Accept-Encoding", "identity")
	if o := out.Header.Get("Origin"); o != "" {
		out.Header.Set("Origin", x.Target.Scheme+"://"+x.Target.Host)
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header.Set("User-Agent", "") // otherwise net/http adds its own
	}
	if r.URL.Path == x.Target.Path || r.URL.Path == "/" && x.Target.Path == "" {
		maps.Copy(out.Header, x.Headers)
	}
	if body != nil {
		setBody(out, body)
	}
	return out, nil
}

// Serve serves the relay on a listener until ctx ends.
func (x *Relay) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: x, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("listening on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if s.Shutdown(grace) != nil {
		_ = s.Close() // ends the streams that have no end
	}
	return nil
}
