package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// A relayRequest is one HTTP request of a client to a [Relay].
type relayRequest struct {
	relay   *Relay
	w       http.ResponseWriter
	r       *http.Request
	session *session
	calls   []*pendingCall // the calls of this request that the server has
	isOpen  bool           // the request opens a session
	isAsked bool           // the client waits for a response
	broken  bool           // the server's stream ended, so the client may resume it

	mu        sync.Mutex // guards writing of events
	streaming bool       // the response has begun as a stream
}

// post passes on a request with a body.
func (q *relayRequest) post(body []byte) {
	f, err := readFrame(onOneLine(body)) // lines have no meaning in a body
	if err != nil {
		q.relay.Guard.log("rejected a request whose body is not a JSON-RPC message: %v", err)
		q.writeJSON(http.StatusBadRequest, errorResponse(nil, codeParse, "this is not a JSON-RPC message: "+err.Error()))
		return
	}
	f.raw = body
	q.isOpen = slices.ContainsFunc(f.messages, func(m message) bool { return m.method == methodInitialize })
	q.isAsked = slices.ContainsFunc(f.messages, func(m message) bool { return m.method != "" && m.id != nil })
	rest, calls := q.session.readClient(&f, q.relay.elicitation)
	rest = q.session.cancel(rest)
	forward, answers := q.rule(rest, calls)
	if len(forward) == 0 {
		q.answer(&f, answers)
		return
	}
	defer q.dropCalls()
	for _, a := range answers {
		_ = q.writeEvent(newEvent(a)) // fails if the client has gone
	}
	q.pass(f.encode(forward))
}

// rule returns the messages for the server, and the responses to calls that do not run.
func (q *relayRequest) rule(rest []message, calls []*call) (forward, answers []jsontext.Value) {
	for _, c := range calls {
		if !strings.Contains(q.r.Header.Get("Accept"), typeStream) && !c.modern {
			c.canAsk = false // a question needs a stream
		}
	}
	repeated := false // headers repeat arguments of the calls
	for name := range q.r.Header {
		repeated = repeated || strings.HasPrefix(name, headerParam)
	}
	pending := q.session.addCalls(q.r.Context(), calls, 0)
	rulings := q.session.rule(calls, pending, q.relay.elicitation, func(request []byte) error { return q.writeEvent(newEvent(request)) })
	for i, c := range calls {
		if r := &rulings[i]; r.forward != nil && !bytes.Equal(r.forward, c.raw) && repeated {
			*r = q.relay.Guard.refuse(c, "a hook rewrites this call, but the request's headers repeat its arguments; make the call in a form that the policy accepts unchanged")
		}
	}
	forward, answers, q.calls = q.session.apply(rest, pending, rulings)
	return forward, answers
}

// answer answers a request that the server does not get.
func (q *relayRequest) answer(f *frame, answers []jsontext.Value) {
	switch {
	case q.streaming:
		for _, a := range answers {
			_ = q.writeEvent(newEvent(a)) // fails if the client has gone
		}
	case len(answers) > 0:
		q.writeJSON(http.StatusOK, f.encode(answers))
	default:
		q.w.WriteHeader(http.StatusAccepted)
	}
}

// writeEvent writes an event of the response, which is a stream from then on.
func (q *relayRequest) writeEvent(event []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.streaming {
		q.streaming = true
		h := q.w.Header()
		h.Set("Content-Type", typeStream)
		h.Set("Cache-Control", "no-cache")
		if q.session.id != "" {
			h.Set(headerSession, q.session.id)
		}
		q.w.WriteHeader(http.StatusOK)
	}
	if _, err := q.w.Write(event); err != nil {
		return err
	}
	return q.flush()
}

func (q *relayRequest) flush() error { return http.NewResponseController(q.w).Flush() }

func (q *relayRequest) writeJSON(status int, body []byte) {
	q.w.Header().Set("Content-Type", typeJSON)
	q.w.WriteHeader(status)
	_, _ = q.w.Write(body) // fails if the client has gone
}

// dropCalls drops the unanswered calls, unless the client can resume the stream of its session.
func (q *relayRequest) dropCalls() {
	for _, p := range q.calls {
		if q.session.id == "" || !q.broken {
			q.session.calls.remove(p)
		} else {
			q.session.calls.detach(p)
		}
	}
}

// fail answers a request that the server could not answer.
func (q *relayRequest) fail(err error) {
	if q.r.Context().Err() != nil {
		return
	}
	q.relay.Guard.log("cannot reach the MCP server: %v", err)
	var id jsontext.Value
	if len(q.calls) == 1 {
		id = q.calls[0].id
	}
	answer := errorResponse(id, codeInternal, "agentshim cannot reach the MCP server: "+withoutURL(err))
	if q.streaming {
		_ = q.writeEvent(newEvent(answer)) // fails if the client has gone
		return
	}
	q.writeJSON(http.StatusBadGateway, answer)
}

// pass sends the request to the server, and the server's response to the client.
func (q *relayRequest) pass(body []byte) {
	out, err := q.relay.upstream(q.r, body)
	if err != nil {
		q.fail(err)
		return
	}
	res, err := q.relay.transport.RoundTrip(out)
	if err != nil {
		q.fail(err)
		return
	}
	defer res.Body.Close()
	if q.r.Method == http.MethodDelete && res.StatusCode < http.StatusMultipleChoices && q.session.id != "" {
		q.relay.sessions.end(q.session.id)
	}
	if id := res.Header.Get(headerSession); q.isOpen && id != "" && id != q.session.id {
		opened := q.relay.sessions.get(id)
		opened.endpoints.copyClient(q.session.endpoints)
		q.session = opened
	}
	kind := mediaType(res.Header)
	encoding := res.Header.Get("Content-Encoding")
	switch {
	case encoding != "" && encoding != "identity" && (kind == typeStream || len(q.calls) > 0):
		q.fail(fmt.Errorf("it answers with the Content-Encoding %q, which agentshim did not accept", encoding))
	case !q.copyHeaders(res):
	case kind == typeStream:
		q.passStream(res.Body)
	case len(q.calls) > 0, kind == typeJSON && (q.isOpen || q.isAsked):
		q.passBody(res)
	default:
		if !q.streaming {
			q.writeStatus(res)
			_ = q.flush() // fails if the client has gone
		}
		_, _ = io.Copy(q.w, res.Body) // fails if the client or the server has gone
	}
}

// mediaType returns the media type that some clients could find in the headers of a response.
func mediaType(h http.Header) string {
	all := strings.ToLower(strings.Join(h.Values("Content-Type"), ","))
	for _, kind := range []string{typeStream, typeJSON} {
		if strings.Contains(all, kind) {
			return kind
		}
	}
	return ""
}

// copyHeaders copies the headers of a response, unless they send the client past the proxy.
func (q *relayRequest) copyHeaders(res *http.Response) bool {
	if at := res.Header.Get("Location"); at != "" {
		u, err := q.relay.Target.Parse(at)
		if err != nil || u.Host != q.relay.Target.Host {
			q.fail(fmt.Errorf("it redirects to %.200s; name that URL with --url", at))
			return false
		}
		u.Scheme, u.Host = "", ""
		res.Header.Set("Location", u.String())
	}
	if q.streaming {
		return true
	}
	h := q.w.Header()
	maps.Copy(h, res.Header)
	for _, name := range hopHeaders() {
		h.Del(name)
	}
	return true
}

// writeStatus writes the status of a response.
func (q *relayRequest) writeStatus(res *http.Response) {
	if res.Header.Get("Content-Type") == "" {
		q.w.Header()["Content-Type"] = nil // otherwise net/http guesses one
	}
	q.w.WriteHeader(res.StatusCode)
}

// passBody passes on a response that is one body.
func (q *relayRequest) passBody(res *http.Response) {
	in := &limitedReader{Reader: res.Body, limit: q.relay.limit}
	defer in.release()
	body, err := io.ReadAll(io.LimitReader(in, MaxMessage+1))
	if err == nil && len(body) > MaxMessage {
		err = errors.New("its answer is longer than the limit of 64 MiB; request less")
	}
	if err != nil {
		q.w.Header().Del("Content-Length")
		q.fail(err)
		return
	}
	out, onDelivered := q.judge(body)
	if q.streaming {
		onDelivered(q.writeEvent(newEvent(out)) == nil)
		return
	}
	q.w.Header().Set("Content-Length", fmt.Sprint(len(out)))
	q.writeStatus(res)
	_, err = q.w.Write(out)
	onDelivered(err == nil && q.flush() == nil)
}

// passStream passes on a stream in its order, since clients resume it after an event.
func (q *relayRequest) passStream(body io.Reader) {
	if !q.streaming {
		q.w.Header().Del("Content-Length")
		q.w.WriteHeader(http.StatusOK)
		_ = q.flush() // fails if the client has gone
		q.streaming = true
	}
	q.broken = true
	in := bufio.NewReaderSize(body, excerpt)
	for {
		e, err := readEvent(in)
		if err != nil {
			if _, long := errors.AsType[*tooLongError](err); long {
				q.fail(errors.New("an event of its stream is longer than the limit of 64 MiB"))
			}
			return
		}
		size := int64(len(e.raw))
		if !q.relay.limit.TryAcquire(size) {
			q.fail(errMemory)
			return
		}
		err = q.passEvent(&e)
		q.relay.limit.Release(size)
		if err != nil {
			return
		}
	}
}

func (q *relayRequest) passEvent(e *sseEvent) error {
	if e.isAmbiguous() {
		return q.writeEvent(newEvent(q.drop(&frame{raw: e.data}, errAmbiguousEvent)))
	}
	out, onDelivered := q.judge(e.data)
	raw := e.raw
	if !bytes.Equal(out, e.data) {
		raw = e.with(out)
	}
	err := q.writeEvent(raw)
	onDelivered(err == nil)
	return err
}

// judge asks about the results in data. onDelivered must be called once, with whether the client got out.
func (q *relayRequest) judge(data []byte) (out []byte, onDelivered func(bool)) {
	f, err := readServerFrame(data)
	if err != nil {
		return q.drop(&f, err), func(bool) {}
	}
	pending, _ := q.session.readServer(&f, q.take)
	parts, onDelivered := q.session.judge(q.r.Context(), &f, pending)
	for i := range f.messages {
		m := &f.messages[i]
		if pending[i] != nil {
			q.session.addReplay(m.id, parts[i])
		} else if r := q.session.replay(m.id); r != nil && m.isResponse() && q.r.Method == http.MethodGet {
			parts[i] = r
		}
	}
	return f.encode(parts), onDelivered
}

// take removes and returns the call of this request that a response answers, or in a session any of its calls.
func (q *relayRequest) take(id jsontext.Value) *pendingCall {
	key := looseKey(id)
	for i, p := range q.calls {
		if p.loose == key {
			q.calls = slices.Delete(slices.Clone(q.calls), i, i+1)
			if q.session.calls.remove(p) {
				return p
			}
			return nil // another stream had the response
		}
	}
	if q.session.id == "" && q.r.Method != http.MethodGet {
		return nil
	}
	return q.session.calls.take(id)
}

// drop returns what the client gets in place of data that clients could read differently.
func (q *relayRequest) drop(f *frame, why error) []byte {
	q.relay.Guard.log("dropped a message of the server: %v", why)
	answers := dropped(f.ids(), q.take, fmt.Sprintf("agentshim dropped the server's answer: %v", why))
	switch len(answers) {
	case 0:
		return errorResponse(nil, codeInternal, "agentshim dropped a message of the server: "+why.Error())
	case 1:
		return answers[0]
	}
	return listOf(answers)
}
