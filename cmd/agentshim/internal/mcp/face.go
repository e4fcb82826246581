package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerLastID  = "Last-Event-Id"
	// resumes is how often a stream that broke is asked for again, and resumeWait how
	// long after that where the server does not say.
	resumes    = 10
	resumeWait = time.Second
	// maxPosts bounds the requests under way.
	maxPosts = 1000
	// farewell is how long the end of a session may take.
	farewell = 2 * time.Second
)

// A Face is a server that speaks over HTTP, for clients that speak in lines.
type Face struct {
	Target *url.URL
	// Headers go with every request, such as the server's Authorization.
	Headers http.Header
	// Transport reaches the server; nil: one of its own.
	Transport http.RoundTripper
	// Stderr hears what people should know.
	Stderr io.Writer

	out   *lineWriter
	slots chan struct{}
	posts sync.WaitGroup

	mu      sync.Mutex // guards what follows
	session string
	version string
}

// Run passes messages on until the client has said its last and all is answered,
// or ctx ends.
func (f *Face) Run(ctx context.Context, p Pipe) error {
	if f.Transport == nil {
		f.Transport = NewTransport()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	f.out, f.slots = &lineWriter{w: out}, make(chan struct{}, maxPosts)
	p.FromServer, p.ToServer = fromServer, toServer
	go func() {
		f.read(ctx, in)
		var last group
		last.do(f.posts.Wait)
		last.wait(ctx, DefaultGrace)
		cancel() // streams that go on for ever
		f.posts.Wait()
		f.end()
		_ = out.Close()
	}()
	err := p.Run(ctx)
	_, _ = in.Close(), fromServer.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// read posts what the client says, in its order.
func (f *Face) read(ctx context.Context, in io.Reader) {
	r := bufio.NewReaderSize(in, glimpse)
	for ctx.Err() == nil {
		line, err := readLine(r)
		if err != nil {
			return
		}
		all, _, err := readMessages(line)
		if err != nil || len(all) == 0 {
			continue // the pipe lets nothing through that is no message
		}
		m := all[0]
		post := func() { f.post(ctx, bytes.TrimRight(line, "\r\n"), &m) }
		if m.method == methodInitialize || m.id == nil || m.method == "" {
			post() // what comes after it must not be there before it
			if m.method == "notifications/initialized" {
				f.posts.Go(func() { f.listen(ctx, "", nil) })
			}
			continue
		}
		select {
		case f.slots <- struct{}{}:
			f.posts.Go(func() { defer func() { <-f.slots }(); post() })
		case <-ctx.Done():
		}
	}
}

// request is a request with what every one has.
func (f *Face) request(ctx context.Context, method string, m *message) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, f.Target.String(), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, f.Headers)
	f.mu.Lock()
	session, version := f.session, f.version
	f.mu.Unlock()
	if m != nil {
		params := m.inner("params")
		meta := params.inner("_meta")
		if v := meta.text(metaVersion); v != "" { // from 2026-07-28 on, headers say what is in the body
			version = v
			r.Header.Set(headerMethod, m.method)
			if name := first(params.text("name"), params.text("uri")); name != "" {
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

// post sends one line and passes on what comes of it.
func (f *Face) post(ctx context.Context, line []byte, m *message) {
	r, err := f.request(ctx, http.MethodPost, m)
	if err == nil {
		setBody(r, line)
		r.Header.Set("Content-Type", typeJSON)
		r.Header.Set("Accept", typeJSON+", "+typeStream)
		err = f.exchange(ctx, r, m)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(f.Stderr, "agentshim: the MCP server: %v\n", err)
		if m.method != "" && m.id != nil {
			_ = f.out.line(response(m.id, "error", fault(-32603, "the MCP server: "+withoutURL(err))))
		}
	}
}

func (f *Face) exchange(ctx context.Context, r *http.Request, m *message) error {
	res, err := f.Transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if id := res.Header.Get(headerSession); id != "" && m.method == methodInitialize {
		f.mu.Lock()
		f.session = id
		f.mu.Unlock()
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case kind == typeStream && res.StatusCode == http.StatusOK:
		return f.stream(ctx, res.Body, m)
	case kind == typeJSON:
		return f.body(res, m)
	case res.StatusCode == http.StatusUnauthorized:
		return errors.New("it requires authentication; write the line Authorization: Bearer TOKEN into a file, and name the file with --headers")
	case res.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("it answers with %s", res.Status)
	}
	return f.silent(res, m)
}

// silent is what it means that there is no message in an answer.
func (f *Face) silent(res *http.Response, m *message) error {
	if m.method != "" && m.id != nil {
		return fmt.Errorf("it answers with %s and an empty body", res.Status)
	}
	return nil
}

// body passes on an answer that is one body. An error that is no message is one of HTTP.
func (f *Face) body(res *http.Response, m *message) error {
	data, err := io.ReadAll(io.LimitReader(res.Body, MaxMessage+1))
	switch {
	case err != nil:
		return err
	case len(data) > MaxMessage:
		return errors.New("its answer is longer than the limit of 64 MiB")
	case len(bytes.TrimSpace(data)) == 0:
		return f.silent(res, m)
	}
	data = compactedIfLines(bytes.TrimSpace(data))
	all, _, err := readMessages(data)
	if err != nil || res.StatusCode >= http.StatusBadRequest && (len(all) != 1 || !all[0].response()) {
		return fmt.Errorf("it answers with %s: %.200s", res.Status, data)
	}
	f.learn(all, m)
	if one := &all[0]; len(all) == 1 && one.get("error") != nil && (one.id == nil || one.id.Kind() == 'n') && m.id != nil {
		data = one.with("id", m.id) // else nobody knows whose it is
	}
	return f.out.line(data)
}

// learn takes in the version of the protocol that the server chose.
func (f *Face) learn(all []message, m *message) {
	if m == nil || m.method != methodInitialize {
		return
	}
	for i := range all {
		if all[i].response() && all[i].key() == m.key() {
			result := all[i].inner("result")
			f.mu.Lock()
			f.version = result.text("protocolVersion")
			f.mu.Unlock()
		}
	}
}

// stream passes on the events of a stream, until the answer to m has come; nil:
// for as long as there is one. A stream that breaks before that is asked for again.
func (f *Face) stream(ctx context.Context, body io.Reader, m *message) error {
	last, wait := "", resumeWait
	answered, err := f.events(body, m, &last, &wait)
	for range resumes {
		switch {
		case answered || ctx.Err() != nil || m != nil && m.id == nil:
			return nil //nolint:nilerr // the answer is there, or nobody waits for it
		case last == "":
			return first2(err, errors.New("its event stream ended without an answer"))
		}
		rest(ctx, wait)
		var res *http.Response
		if res, err = f.get(ctx, last); err != nil {
			continue
		}
		answered, err = f.events(res.Body, m, &last, &wait)
		_ = res.Body.Close()
	}
	return first2(err, errors.New("its event stream ended without an answer"))
}

func first2(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// events passes on events until the answer to m has come, or the stream ends.
func (f *Face) events(body io.Reader, m *message, last *string, wait *time.Duration) (answered bool, err error) {
	in := bufio.NewReaderSize(body, glimpse)
	for {
		e, err := readEvent(in)
		if errors.Is(err, io.EOF) {
			return answered, nil
		}
		if err != nil {
			return answered, err
		}
		if e.id != "" {
			*last = e.id
		}
		if e.retry > 0 {
			*wait = min(e.retry, time.Minute)
		}
		data := compactedIfLines(bytes.TrimSpace(e.data))
		if len(data) == 0 {
			continue
		}
		if all, _, err := readMessages(data); err == nil {
			f.learn(all, m)
			for i := range all {
				answered = answered || m != nil && all[i].response() && all[i].key() == m.key()
			}
		}
		if err := f.out.line(data); err != nil {
			return answered, err
		}
	}
}

// get asks for a stream: from an event on, or, without one, for what the server
// says by itself.
func (f *Face) get(ctx context.Context, last string) (*http.Response, error) {
	r, err := f.request(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", typeStream)
	if last != "" {
		r.Header.Set(headerLastID, last)
	}
	res, err := f.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); res.StatusCode != http.StatusOK || kind != typeStream {
		_ = res.Body.Close()
		return nil, fmt.Errorf("it answers with %s", res.Status)
	}
	return res, nil
}

// listen passes on what the server says by itself, if it says something so.
func (f *Face) listen(ctx context.Context, last string, m *message) {
	wait := resumeWait
	for ctx.Err() == nil {
		res, err := f.get(ctx, last)
		if err != nil {
			return // it has none, or there is no server
		}
		_, _ = f.events(res.Body, m, &last, &wait)
		_ = res.Body.Close()
		rest(ctx, wait)
	}
}

// end says that the session is over.
func (f *Face) end() {
	f.mu.Lock()
	session := f.session
	f.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if r, err := f.request(ctx, http.MethodDelete, nil); err == nil {
		if res, err := f.Transport.RoundTrip(r); err == nil {
			_ = res.Body.Close()
		}
	}
}

// headerValue is a text as a header can have it.
func headerValue(s string) string {
	for _, c := range s {
		if c < ' ' || c > '~' {
			return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
		}
	}
	return s
}

func rest(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
