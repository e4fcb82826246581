package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A visit is one request of a client to a relay.
type visit struct {
	x       *Relay
	w       http.ResponseWriter
	r       *http.Request
	session *session
	mine    []*entry // the calls of this very request
	stream  bool     // the answer has begun as a stream
	broken  bool     // the server's stream ended, and may be asked for again
	opening bool     // it opens a session
	want    bool     // somebody waits for an answer
}

// setBody gives a request a body.
func setBody(r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.ContentLength = int64(len(body))
}

// post passes on what stands in the body of a request.
func (v *visit) post(body []byte) {
	all, batch, err := readMessages(compactedIfLines(body)) // a body has no lines
	if err != nil {
		v.x.Guard.say("rejected a request whose body is not a JSON-RPC message: %v", err)
		v.json(http.StatusBadRequest, response(nil, "error", fault(-32700, "this is not a JSON-RPC message: "+err.Error())))
		return
	}
	rest, calls, changed := v.sort(all)
	switch {
	case len(rest) == 0:
		v.w.WriteHeader(http.StatusAccepted)
	case len(calls) > 0:
		v.hold(body, batch, rest, calls, changed)
	case changed:
		v.pass(oneOrList(raws(rest), batch))
	default:
		v.pass(body)
	}
}

// compactedIfLines is JSON on one line.
func compactedIfLines(data []byte) []byte {
	if bytes.ContainsAny(bytes.TrimSpace(data), "\r\n") {
		return compacted(data)
	}
	return data
}

// compacted is JSON without what is between its values, where lines may end.
func compacted(body []byte) []byte {
	v := jsontext.Value(bytes.Clone(body))
	if v.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true)) != nil {
		return body
	}
	return v
}

// oneOrList are messages as they came: one, or a list.
func oneOrList(all []jsontext.Value, batch bool) []byte {
	if !batch {
		return all[0]
	}
	return listOf(all)
}

// sort takes out what is for the proxy, and tells calls from the rest.
func (v *visit) sort(all []message) (rest []message, calls []*call, changed bool) {
	for _, m := range all {
		v.session.peer.hears(&m)
		v.opening = v.opening || m.method == methodInitialize
		v.want = v.want || m.method != "" && m.id != nil
		switch m.method {
		case "":
			if v.x.desk.answered(&m) {
				changed = true
				continue
			}
		case methodCancelled:
			params := m.inner("params")
			if !v.session.calls.cancelled(params.get("requestId")) {
				changed = true
				continue
			}
		case methodTaskResult:
			v.session.calls.resumed(&m)
		case methodCall:
			calls = append(calls, v.x.Guard.newCall(m, v.session.peer))
		}
		rest = append(rest, m)
	}
	return rest, calls, changed
}

// hold has the calls of a request judged, and passes on what is left.
func (v *visit) hold(body []byte, batch bool, rest []message, calls []*call, changed bool) {
	var forward, answers []jsontext.Value
	n := 0
	for _, m := range rest {
		if m.method != methodCall {
			forward = append(forward, m.raw)
			continue
		}
		c := calls[n]
		n++
		e := v.session.calls.add(v.r.Context(), c, len(c.raw))
		r := v.rule(c, e)
		if r.forward != nil && !bytes.Equal(r.forward, m.raw) && v.mirrored() {
			r = v.x.Guard.refused(c, "a hook rewrites this call, but the request's headers repeat its arguments; make the call in a form that the policy accepts unchanged")
		}
		if r.forward != nil && v.session.calls.send(e) {
			changed = changed || !bytes.Equal(r.forward, m.raw)
			forward = append(forward, r.forward)
			v.mine = append(v.mine, e)
			continue
		}
		changed = true
		if e != nil {
			v.session.calls.remove(e)
		}
		if r.answer != nil && (e == nil || !v.session.calls.isOver(e)) {
			answers = append(answers, r.answer)
		}
	}
	if len(forward) > 0 {
		defer v.forget()
		for _, a := range answers {
			_ = v.event(event(a)) // or the client has gone
		}
		if changed {
			body = oneOrList(forward, batch)
		}
		v.pass(body)
		return
	}
	switch {
	case len(answers) == 0:
		v.w.WriteHeader(http.StatusAccepted)
	case v.stream:
		for _, a := range answers {
			_ = v.event(event(a)) // or the client has gone
		}
	default:
		v.json(http.StatusOK, oneOrList(answers, batch))
	}
}

// mirrored reports whether arguments stand in headers, too.
func (v *visit) mirrored() bool {
	for name := range v.r.Header {
		if strings.HasPrefix(name, headerParam) {
			return true
		}
	}
	return false
}

// rule is what becomes of one call, a person's word included.
func (v *visit) rule(c *call, e *entry) ruling {
	g := v.x.Guard
	if e == nil {
		return g.refused(c, "too many calls are under way; wait for answers before you make more calls")
	}
	defer e.cancel()
	if r, ok := g.resumed(c); ok {
		return r
	}
	if !strings.Contains(v.r.Header.Get("Accept"), typeStream) && !c.modern {
		c.asks = false // there is no way to ask
	}
	r := g.before(e.asking, c)
	switch {
	case r.ask == "" || e.asking.Err() != nil:
		return r
	case c.modern:
		return g.inputRequired(c, r)
	}
	desk := v.x.desk.through(&lineWriter{w: eventWriter{v}})
	if approved, why := desk.ask(e.asking, c, r.ask); !approved {
		return g.refused(c, why)
	}
	return r
}

// An eventWriter writes lines as events of the answer.
type eventWriter struct{ v *visit }

func (w eventWriter) Write(line []byte) (int, error) {
	return len(line), w.v.event(event(bytes.TrimSuffix(line, []byte("\n"))))
}

// event writes an event of the answer, which is a stream from the first on.
func (v *visit) event(data []byte) error {
	if !v.stream {
		v.stream = true
		h := v.w.Header()
		h.Set("Content-Type", typeStream)
		h.Set("Cache-Control", "no-cache")
		if v.session.id != "" {
			h.Set(headerSession, v.session.id)
		}
		v.w.WriteHeader(http.StatusOK)
	}
	if _, err := v.w.Write(data); err != nil {
		return err
	}
	return http.NewResponseController(v.w).Flush()
}

func (v *visit) json(status int, body []byte) {
	v.w.Header().Set("Content-Type", typeJSON)
	v.w.WriteHeader(status)
	_, _ = v.w.Write(body) // or the client has gone
}

// forget ends the calls of the request that nobody can answer any more. With a
// session, the client can ask again for a stream that broke.
func (v *visit) forget() {
	for _, e := range v.mine {
		if v.session.id == "" || !v.broken {
			v.session.calls.remove(e)
		} else {
			v.session.calls.leave(e)
		}
	}
}

// fail says that the server could not be reached.
func (v *visit) fail(err error) {
	if v.r.Context().Err() != nil {
		return
	}
	v.x.Guard.say("cannot reach the MCP server: %v", err)
	answer := response(nil, "error", fault(-32603, "agentshim cannot reach the MCP server: "+withoutURL(err)))
	if len(v.mine) == 1 {
		answer = response(v.mine[0].id, "error", fault(-32603, "agentshim cannot reach the MCP server: "+withoutURL(err)))
	}
	if v.stream {
		_ = v.event(event(answer)) // or the client has gone
		return
	}
	v.json(http.StatusBadGateway, answer)
}

// withoutURL leaves out the address, which may hold secrets.
func withoutURL(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error()
	}
	return err.Error()
}

// pass gives a request to the server and its answer to the client.
func (v *visit) pass(body []byte) {
	out, err := v.x.upstream(v.r, body)
	if err != nil {
		v.fail(err)
		return
	}
	res, err := v.x.Transport.RoundTrip(out)
	if err != nil {
		v.fail(err)
		return
	}
	defer res.Body.Close()
	if v.r.Method == http.MethodDelete && res.StatusCode < http.StatusMultipleChoices && v.session.id != "" {
		v.x.sessions.end(v.session.id)
	}
	if id := res.Header.Get(headerSession); v.opening && id != "" && id != v.session.id {
		opened := v.x.sessions.get(id)
		opened.peer.adopt(v.session.peer)
		v.session = opened
	}
	kind := kindOf(res.Header)
	encoded := res.Header.Get("Content-Encoding")
	switch {
	case encoded != "" && encoded != "identity" && (kind == typeStream || len(v.mine) > 0):
		v.fail(fmt.Errorf("it answers with the Content-Encoding %q, which agentshim did not accept", encoded))
	case !v.head(res):
	case kind == typeStream:
		v.events(res.Body)
	case len(v.mine) > 0, kind == typeJSON && (v.opening || v.want):
		v.whole(res)
	default:
		v.begin(res)
		_, _ = io.Copy(v.w, res.Body) // or one of both has gone
	}
}

// kindOf is what some client takes an answer for by its headers.
func kindOf(h http.Header) string {
	said := strings.ToLower(strings.Join(h.Values("Content-Type"), ","))
	for _, kind := range []string{typeStream, typeJSON} {
		if strings.Contains(said, kind) {
			return kind
		}
	}
	return ""
}

// head takes over the headers of an answer; false: there must be none. One that
// sends the client elsewhere would send it past the proxy.
func (v *visit) head(res *http.Response) bool {
	if at := res.Header.Get("Location"); at != "" {
		u, err := v.x.Target.Parse(at)
		if err != nil || u.Host != v.x.Target.Host {
			v.fail(fmt.Errorf("it redirects to %.200s; name that URL with --url", at))
			return false
		}
		u.Scheme, u.Host = "", ""
		res.Header.Set("Location", u.String())
	}
	if v.stream {
		return true
	}
	h := v.w.Header()
	maps.Copy(h, res.Header)
	for _, name := range hop() {
		h.Del(name)
	}
	return true
}

// begin writes the status of an answer that passes as it is.
func (v *visit) begin(res *http.Response) {
	if v.stream {
		return
	}
	if res.Header.Get("Content-Type") == "" {
		v.w.Header()["Content-Type"] = nil // else the library guesses one
	}
	v.w.WriteHeader(res.StatusCode)
	_ = http.NewResponseController(v.w).Flush()
}

// whole passes on an answer that is one body.
func (v *visit) whole(res *http.Response) {
	in := &metered{Reader: res.Body, room: v.x.room}
	defer in.done()
	body, err := io.ReadAll(io.LimitReader(in, MaxMessage+1))
	if err == nil && len(body) > MaxMessage {
		err = errors.New("its answer is longer than the limit of 64 MiB; request less")
	}
	if err != nil {
		v.w.Header().Del("Content-Length")
		v.fail(err)
		return
	}
	out, told := v.look(v.r.Context(), body)
	if v.stream {
		told(v.event(event(out)) == nil)
		return
	}
	v.w.Header().Set("Content-Length", fmt.Sprint(len(out)))
	if res.Header.Get("Content-Type") == "" {
		v.w.Header()["Content-Type"] = nil // else the library guesses one
	}
	v.w.WriteHeader(res.StatusCode)
	_, err = v.w.Write(out)
	told(err == nil && http.NewResponseController(v.w).Flush() == nil)
}

// events passes on a stream. Its events keep their order, by which clients ask for
// what they missed.
func (v *visit) events(body io.Reader) {
	if !v.stream {
		v.w.Header().Del("Content-Length")
		v.w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(v.w).Flush()
		v.stream = true
	}
	v.broken = true
	in := bufio.NewReaderSize(body, glimpse)
	for {
		e, err := readEvent(in)
		if err != nil {
			if _, long := errors.AsType[*tooLong](err); long {
				v.fail(errors.New("an event of its stream is longer than the limit of 64 MiB"))
			}
			return
		}
		size := len(e.raw)
		if !v.x.room.take(size) {
			v.fail(errNoRoom)
			return
		}
		err = v.show(&e)
		v.x.room.give(size)
		if err != nil {
			return
		}
	}
}

// show passes on one event.
func (v *visit) show(e *sseEvent) error {
	if e.ambiguous() {
		return v.event(event(v.withhold(e.data, nil, errOtherLines)))
	}
	out, told := v.look(v.r.Context(), e.data)
	raw := e.raw
	if !bytes.Equal(out, e.data) {
		raw = e.with(out)
	}
	err := v.event(raw)
	told(err == nil)
	return err
}
