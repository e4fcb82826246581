package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus/chown"
)

// The headers and media types of MCP over HTTP.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
	headerLastID  = "Last-Event-Id"
	typeJSON      = "application/json"
	typeStream    = "text/event-stream"
)

const (
	// maxResumes is how often a broken stream is resumed, and resumeWait the default time before it.
	maxResumes    = 10
	resumeWait    = time.Second
	maxPosts      = 1000            // bounds the requests under way
	deleteTimeout = 2 * time.Second // limits the time for the end of a session
)

// An HTTPClient connects a [Pipe] to a server that serves MCP over HTTP.
type HTTPClient struct {
	// Target is the server.
	Target *url.URL
	// Headers are in each request, such as the server's Authorization.
	Headers http.Header
	// Stderr gets messages for the operator.
	Stderr io.Writer

	transport *http.Transport
	toPipe    *lineWriter
	posts     errgroup.Group

	mu      sync.Mutex // guards the fields below
	session string
	version string
}

// Run passes messages on until the client's output ends and all requests are answered, or ctx ends.
func (h *HTTPClient) Run(ctx context.Context, p Pipe) error {
	h.transport = newTransport()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fromPipe, toServer := io.Pipe()
	fromServer, toPipe := io.Pipe()
	h.toPipe = &lineWriter{w: toPipe}
	h.posts.SetLimit(maxPosts)
	p.FromServer, p.ToServer = fromServer, toServer
	go func() {
		h.read(ctx, fromPipe)
		wait := func() { _ = h.posts.Wait() }
		waitAtMost(ctx, DefaultGrace, wait)
		cancel() // ends the streams that have no end
		wait()
		h.deleteSession()
		_ = toPipe.Close()
	}()
	err := p.Run(ctx)
	_, _ = fromPipe.Close(), fromServer.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// read posts the client's messages in their order.
func (h *HTTPClient) read(ctx context.Context, fromPipe io.Reader) {
	r := bufio.NewReaderSize(fromPipe, excerpt)
	for ctx.Err() == nil {
		line, err := readLine(r)
		if err != nil {
			return
		}
		f, err := readFrame(line)
		if err != nil || len(f.messages) == 0 {
			continue // an empty line: the Pipe drops lines that are not messages
		}
		m := &f.messages[0]
		post := func() error {
			h.post(ctx, bytes.TrimRight(line, "\r\n"), m)
			return nil
		}
		if m.method != methodInitialize && m.id != nil && m.method != "" {
			h.posts.Go(post)
			continue
		}
		_ = post() // the next message must not overtake it
		if m.method == "notifications/initialized" {
			h.posts.Go(func() error {
				h.listen(ctx)
				return nil
			})
		}
	}
}

// newRequest returns a request with the headers for m; nil: for no message.
func (h *HTTPClient) newRequest(ctx context.Context, method string, m *message) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, h.Target.String(), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, h.Headers)
	h.mu.Lock()
	session, version := h.session, h.version
	h.mu.Unlock()
	if m != nil {
		params := m.child("params")
		meta := params.child("_meta")
		if v := meta.text(metaVersion); v != "" { // from 2026-07-28 on, headers repeat the body
			version = v
			r.Header.Set(headerMethod, m.method)
			if name := cmp.Or(params.text("name"), params.text("uri")); name != "" {
				r.Header.Set(headerName, headerValue(name))
			}
		}
	}
	if session != "" {
		r.Header.Set(headerSession, session)
	}
	if version != "" {
		r.Header.Set(headerVersion, version)
	}
	return r, nil
}

// headerValue encodes a text that a header cannot have as it is.
func headerValue(s string) string {
	if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
	}
	return s
}

func setBody(r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.ContentLength = int64(len(body))
}

// post sends one line, whose first message is m, and passes on the response.
func (h *HTTPClient) post(ctx context.Context, line []byte, m *message) {
	r, err := h.newRequest(ctx, http.MethodPost, m)
	if err == nil {
		setBody(r, line)
		r.Header.Set("Content-Type", typeJSON)
		r.Header.Set("Accept", typeJSON+", "+typeStream)
		err = h.roundTrip(ctx, r, m)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(h.Stderr, "agentshim: the MCP server: %v\n", err)
		if m.method != "" && m.id != nil {
			_ = h.toPipe.write(errorResponse(m.id, codeInternal, "the MCP server: "+withoutURL(err)))
		}
	}
}

func (h *HTTPClient) roundTrip(ctx context.Context, r *http.Request, m *message) error {
	res, err := h.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if id := res.Header.Get(headerSession); id != "" && m.method == methodInitialize {
		h.mu.Lock()
		h.session = id
		h.mu.Unlock()
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case kind == typeStream && res.StatusCode == http.StatusOK:
		return h.readStream(ctx, res.Body, m)
	case kind == typeJSON:
		return h.readBody(res, m)
	case res.StatusCode == http.StatusUnauthorized:
		return errors.New("it requires authentication; write the line Authorization: Bearer TOKEN into a file, and name the file with --headers")
	case res.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("it answers with %s", res.Status)
	}
	return checkEmpty(res, m)
}

// checkEmpty returns an error if a response without a message had to answer m.
func checkEmpty(res *http.Response, m *message) error {
	if m.method != "" && m.id != nil {
		return fmt.Errorf("it answers with %s and an empty body", res.Status)
	}
	return nil
}

func (h *HTTPClient) readBody(res *http.Response, m *message) error {
	data, err := io.ReadAll(io.LimitReader(res.Body, MaxMessage+1))
	switch {
	case err != nil:
		return err
	case len(data) > MaxMessage:
		return errors.New("its answer is longer than the limit of 64 MiB")
	case len(bytes.TrimSpace(data)) == 0:
		return checkEmpty(res, m)
	}
	data = onOneLine(bytes.TrimSpace(data))
	f, err := readFrame(data)
	if err != nil || res.StatusCode >= http.StatusBadRequest && (len(f.messages) != 1 || !f.messages[0].isResponse()) {
		return fmt.Errorf("it answers with %s: %.200s", res.Status, data) // an error of HTTP, not of MCP
	}
	h.learnVersion(&f, m)
	if len(f.messages) == 1 && m.id != nil {
		if one := &f.messages[0]; one.get("error") != nil && (one.id == nil || one.id.Kind() == 'n') {
			data = one.with("id", m.id) // so that the client knows which request failed
		}
	}
	return h.toPipe.write(data)
}

// learnVersion reads the protocol version from the response to an initialize request.
func (h *HTTPClient) learnVersion(f *frame, m *message) {
	if m == nil || m.method != methodInitialize {
		return
	}
	for i := range f.messages {
		if f.messages[i].answers(m) {
			result := f.messages[i].child("result")
			h.mu.Lock()
			h.version = result.text("protocolVersion")
			h.mu.Unlock()
		}
	}
}

func (m *message) answers(request *message) bool {
	return m.isResponse() && exactKey(m.id) == exactKey(request.id)
}

// A position is where to resume a stream, and when.
type position struct {
	lastID string
	wait   time.Duration
}

// readStream passes on a stream until the response to m. It resumes a stream that breaks before.
func (h *HTTPClient) readStream(ctx context.Context, body io.Reader, m *message) error {
	at := position{wait: resumeWait}
	answered, err := h.readEvents(body, m, &at)
	for resumes := 0; ; resumes++ {
		switch {
		case answered || ctx.Err() != nil || m.id == nil:
			return nil //nolint:nilerr // the response is here, or no client waits for it
		case at.lastID == "" || resumes == maxResumes:
			return cmp.Or(err, errors.New("its event stream ended without an answer"))
		}
		pause(ctx, at.wait)
		var res *http.Response
		if res, err = h.get(ctx, at.lastID); err != nil {
			continue
		}
		answered, err = h.readEvents(res.Body, m, &at)
		_ = res.Body.Close()
	}
}

// readEvents passes on events to the end of the stream. answered: the response to m was among them.
func (h *HTTPClient) readEvents(body io.Reader, m *message, at *position) (answered bool, err error) {
	in := bufio.NewReaderSize(body, excerpt)
	for {
		e, err := readEvent(in)
		if errors.Is(err, io.EOF) {
			return answered, nil
		}
		if err != nil {
			return answered, err
		}
		at.lastID = cmp.Or(e.id, at.lastID)
		if e.retry > 0 {
			at.wait = min(e.retry, time.Minute)
		}
		data := onOneLine(bytes.TrimSpace(e.data))
		if len(data) == 0 {
			continue
		}
		if f, err := readFrame(data); err == nil {
			h.learnVersion(&f, m)
			for i := range f.messages {
				answered = answered || m != nil && f.messages[i].answers(m)
			}
		}
		if err := h.toPipe.write(data); err != nil {
			return answered, err
		}
	}
}

// get opens a stream after an event; empty: of messages that the server sends without a request.
func (h *HTTPClient) get(ctx context.Context, lastID string) (*http.Response, error) {
	r, err := h.newRequest(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", typeStream)
	if lastID != "" {
		r.Header.Set(headerLastID, lastID)
	}
	res, err := h.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); res.StatusCode != http.StatusOK || kind != typeStream {
		_ = res.Body.Close()
		return nil, fmt.Errorf("it answers with %s", res.Status)
	}
	return res, nil
}

// listen passes on what the server sends without a request, if it has a stream for this.
func (h *HTTPClient) listen(ctx context.Context) {
	at := position{wait: resumeWait}
	for ctx.Err() == nil {
		res, err := h.get(ctx, at.lastID)
		if err != nil {
			return
		}
		_, _ = h.readEvents(res.Body, nil, &at)
		_ = res.Body.Close()
		pause(ctx, at.wait)
	}
}

func (h *HTTPClient) deleteSession() {
	h.mu.Lock()
	session := h.session
	h.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	if r, err := h.newRequest(ctx, http.MethodDelete, nil); err == nil {
		if res, err := h.transport.RoundTrip(r); err == nil {
			_ = res.Body.Close()
		}
	}
}

func pause(ctx context.Context, wait time.Duration) {
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}

// withoutURL returns the text of an error without the address, which may contain secrets.
func withoutURL(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error()
	}
	return err.Error()
}

// ReadHeaders reads a file of lines NAME: VALUE, which only its owner may read: it has secrets.
func ReadHeaders(path string) (http.Header, error) {
	if path == "" {
		return nil, nil
	}
	if err := chown.Private(path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("%s: line %d is not a header; write NAME: VALUE", path, i+1) // without the line, which may be a secret
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}
