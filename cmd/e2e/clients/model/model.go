// Package model is a scripted language model for tests. It serves the protocols that coding
// agents and agent loops use: Anthropic's messages, OpenAI's responses and chat completions,
// and Gemini's contents. It records every request, so that a test can check what a model would
// have seen. Several goroutines may use a server.
//
// # Coding agents
//
// [Start] takes a script of turns. Coding agents also send requests that are not turns, for
// example for a title: a request without tools is not a turn. The server keeps no count of turns.
// The conversation in the request says which turn it is, so a client may repeat a request.
//
// # Loops
//
// The test of an agent loop computes its answer from the request:
//
//	m := model.StartFunc(func(r model.Request) model.Turn {
//		if !r.Saw("<answer>") { // the prompt does not ask for the format yet
//			return model.Turn{Text: "42"}
//		}
//		return model.Turn{Text: "<answer>42</answer>"}
//	})
//	defer m.Close()
//	// the loop's model is at m.URL, in any format; then
//	for _, r := range m.Requests() { r.System; r.Messages; r.Turn; r.Nth }
//
// Here every request is a turn, also without tools. [Turns] makes such a function from a script,
// for loops that offer no tools. A turn may also be a fault: [Turn.Status], [Turn.Hang],
// [Turn.Raw].
//
// In a bubble of testing/synctest there is no listener: [Make] takes the function, and
// [Server.Client] is an HTTP client that sends requests for any host to the model.
package model

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// Host is the address of a model without a listener; any other works, too.
const Host = "http://127.0.0.1:80"

// maxRequest bounds a request, in bytes.
const maxRequest = 32 << 20

// A Turn is one answer of the model.
type Turn struct {
	// Calls are the tools it calls; none: the agent is done.
	Calls []Call
	// Text is its text; empty: no text, or "done" without calls.
	Text string
	// Cut: the answer ended at its limit, after Text.
	Cut bool

	// Status is the status of an error, such as 500 or 429, with Text as its message; 0: no error.
	Status int
	// RetryAfter is the header of that name of an error; empty: no header.
	RetryAfter string
	// Hang: it does not answer until the client is gone or the model is closed.
	Hang bool
	// Raw is sent in place of the turn; empty: the turn is sent.
	Raw string
}

// A Call is one call of a tool.
type Call struct {
	// ID is the id of the call; empty: a generated one.
	ID string
	// Tool is the client's name of the tool.
	Tool string
	// Namespace is the namespace of the tool in OpenAI's protocol; empty: none.
	Namespace string
	// Input is encoded as JSON. In OpenAI's responses a string is the input of a tool with free text, and in its
	// chat completions the raw arguments, which may be invalid.
	Input any
}

// A Request is a request to the model.
type Request struct {
	// Path is the path of its URL.
	Path string
	// Turn is the number of turns of the model in it; -1: it is not a request for a turn, but for example for a
	// title.
	Turn int
	// Nth counts the requests for turns, including repeated ones, from 0.
	Nth int
	// System is the system prompt, if the protocol has a field for it.
	System string
	// Messages are the messages of the conversation, in order.
	Messages []Message
	// Tools are the names of the tools that the client offers.
	Tools []string
	// Body is the raw request.
	Body jsontext.Value
}

// A Message is a message of a request.
type Message struct {
	// Role is the role in the protocol; empty: the protocol has no roles.
	Role string
	// Text has the strings that a model reads, one per line, without those of the protocol, such as types and ids.
	Text string
	// Raw is the raw message.
	Raw jsontext.Value
}

// Saw reports whether the request contains text.
func (r *Request) Saw(text string) bool { return strings.Contains(r.Texts(), text) }

// Last returns the last message; the zero Message: there is no message.
func (r *Request) Last() Message {
	if n := len(r.Messages); n > 0 {
		return r.Messages[n-1]
	}
	return Message{}
}

// Texts returns all strings of the request, in order: what the model sees, in any protocol.
func (r *Request) Texts() string {
	var b strings.Builder
	for s := range texts(r.Body) {
		b.WriteString(s)
		b.WriteByte('\n')
	}
	return b.String()
}

// A Server is the model, on the loopback interface. Make one with [Start], [StartFunc] or [Make].
type Server struct {
	// URL is its address, or [Host].
	URL string

	reply func(Request) Turn
	// loops: every request is for a turn.
	loops   bool
	handler http.Handler
	http    *httptest.Server // nil: it does not listen
	end     func()
	closed  <-chan struct{} // closed with the model

	mu   sync.Mutex // guards the following fields
	seen []Request
	odd  []string
}

// Start starts a model with a script. After its last turn, the model says that it is done.
func Start(script ...Turn) *Server {
	s := made(Turns(script...))
	s.loops = false
	return s.listen()
}

// StartFunc starts a model that answers with the result of reply, which several goroutines may call.
func StartFunc(reply func(Request) Turn) *Server { return made(reply).listen() }

// Make is [StartFunc] for a model without a listener: see [Server.Client].
func Make(reply func(Request) Turn) *Server { return made(reply) }

// Turns returns a function that answers each turn from the script, and then that the model is done.
func Turns(script ...Turn) func(Request) Turn {
	return func(r Request) Turn {
		if r.Turn >= 0 && r.Turn < len(script) {
			return script[r.Turn]
		}
		return Turn{}
	}
}

func made(reply func(Request) Turn) *Server {
	closed := make(chan struct{})
	s := &Server{URL: Host, reply: reply, loops: true, closed: closed, end: sync.OnceFunc(func() { close(closed) })}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.answer(messages{}))
	mux.HandleFunc("POST /v1/messages/count_tokens", static(`{"input_tokens":100}`))
	mux.HandleFunc("POST /v1/responses", s.answer(responses{}))
	mux.HandleFunc("POST /v1/chat/completions", s.answer(completions{}))
	mux.HandleFunc("POST /v1beta/models/{call}", s.gemini)
	mux.HandleFunc("/", s.unknown)
	s.handler = mux
	return s
}

func (s *Server) listen() *Server {
	s.http = httptest.NewServer(s.handler)
	s.URL = s.http.URL
	return s
}

// Close stops the model and aborts answers in progress.
func (s *Server) Close() {
	s.end()
	if s.http != nil {
		s.http.CloseClientConnections()
		s.http.Close()
	}
}

// Requests returns the requests for turns so far, in order.
func (s *Server) Requests() []Request {
	return slices.DeleteFunc(s.All(), func(r Request) bool { return r.Turn < 0 })
}

// All returns all requests so far, including those that are not for turns.
func (s *Server) All() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// At returns the first request for the turn, if there was one.
func (s *Server) At(turn int) (Request, bool) {
	all := s.Requests()
	if i := slices.IndexFunc(all, func(r Request) bool { return r.Turn == turn }); i >= 0 {
		return all[i], true
	}
	return Request{}, false
}

// Odd returns the requests to unknown addresses, as method and path.
func (s *Server) Odd() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.odd)
}

// A protocol is the protocol of a vendor.
type protocol interface {
	// read decodes a request.
	read(body []byte) (Request, error)
	// write answers it, as a stream or at once.
	write(w http.ResponseWriter, t Turn, body []byte) error
}

func (s *Server) answer(p protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		req, err := p.read(body)
		if err != nil {
			http.Error(w, fmt.Sprintf(`{"error":{"message":%q}}`, err), http.StatusBadRequest)
			return
		}
		req.Path, req.Body = r.URL.Path, body
		req.readMessages()
		t := s.turn(s.note(req))
		if t.fault(w) {
			return
		}
		if t.Hang {
			select {
			case <-r.Context().Done():
			case <-s.closed:
			}
			panic(http.ErrAbortHandler)
		}
		if err := p.write(w, t, body); err != nil {
			panic(http.ErrAbortHandler) // the client must not accept a partial answer
		}
	}
}

// note stores a request.
func (s *Server) note(req Request) Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loops {
		req.Turn = req.turns()
	}
	for _, before := range s.seen {
		if before.Turn >= 0 {
			req.Nth++
		}
	}
	s.seen = append(s.seen, req)
	return req
}

// turn returns the complete answer to a request.
func (s *Server) turn(r Request) Turn {
	var t Turn
	if r.Turn >= 0 {
		t = s.reply(r)
	}
	if t.Text == "" && len(t.Calls) == 0 {
		t.Text = "done"
	}
	t.Calls = slices.Clone(t.Calls)
	for i := range t.Calls {
		if t.Calls[i].ID == "" {
			t.Calls[i].ID = fmt.Sprintf("call_%d_%d", r.Turn, i)
		}
	}
	return t
}

// fault answers with an error, or with an answer that violates the protocol, if the turn is one.
func (t *Turn) fault(w http.ResponseWriter) bool {
	w.Header().Set("Content-Type", "application/json")
	if t.RetryAfter != "" {
		w.Header().Set("Retry-After", t.RetryAfter)
	}
	body := t.Raw
	if body == "" && t.Status != 0 {
		data, err := schema.Marshal(object{"type": "error", "error": object{"type": "scripted", "message": t.Text}})
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		body = string(data)
	}
	if body == "" {
		return false
	}
	w.WriteHeader(max(t.Status, http.StatusOK))
	_, _ = io.WriteString(w, body)
	return true
}

func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.odd = append(s.odd, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if r.Method == http.MethodHead {
		return // a health check
	}
	http.Error(w, `{"error":{"message":"not known here"}}`, http.StatusNotFound)
}

func static(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// stream writes server-sent events. An empty name is omitted.
func stream(w http.ResponseWriter, events []event) error {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		data, err := schema.Marshal(e.data)
		if err != nil {
			return fmt.Errorf("encoding the event %s: %w", e.name, err)
		}
		if e.name != "" {
			fmt.Fprintf(w, "event: %s\n", e.name)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	return nil
}

type event struct {
	name string
	data any
}

// object is a JSON object.
type object = map[string]any
