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

// Host is where a model that does not listen seems to be; any other does as well.
const Host = "http://127.0.0.1:80"

// maxRequest bounds what a client may send, in bytes.
const maxRequest = 32 << 20

// A Turn is what the model says at once.
type Turn struct {
	// Calls are the tools it calls; none: the agent is done.
	Calls []Call
	// Text is what it says besides; empty: nothing, or "done" where it calls nothing.
	Text string
	// Cut: the answer ended at its bound, behind what is said here.
	Cut bool

	// Status is that of an error to answer with, such as 500 or 429; Text is then what
	// it says; 0: none.
	Status int
	// RetryAfter is what the error says of when to come again, as the header has
	// it; empty: nothing.
	RetryAfter string
	// Hang: it never answers, until the client is gone or the model closed.
	Hang bool
	// Raw is sent as it is, as if it were an answer; empty: the turn is.
	Raw string
}

// A Call is one call of a tool.
type Call struct {
	// ID is the model's own; empty: one is made up.
	ID string
	// Tool is the name by which the client offers the tool.
	Tool string
	// Namespace is what OpenAI's protocol puts before the name; empty: nothing.
	Namespace string
	// Input is encoded as JSON. A string is, in OpenAI's responses, the input of a
	// tool that takes free text, and in its chat completions the arguments as they
	// are, broken ones too.
	Input any
}

// A Request is what the model was asked.
type Request struct {
	// Path is where the client sent it.
	Path string
	// Turn says how many turns of the model it has in it; -1: it is not a turn of
	// the agent, but something that the client asks besides, such as a title.
	Turn int
	// Nth counts the requests for turns, from 0, those asked again included.
	Nth int
	// System is what the system says, where the protocol has a place of its own for it.
	System string
	// Messages are those of the conversation, in order.
	Messages []Message
	// Tools are the names of the tools that the client offers.
	Tools []string
	// Body is the request as it came.
	Body jsontext.Value
}

// A Message is one of a request.
type Message struct {
	// Role is the protocol's word for who speaks; empty: the protocol does not say it.
	Role string
	// Text is all that a model reads of it: the strings in it, one a line, but not
	// those that are the protocol's own, such as types and ids.
	Text string
	// Raw is the message as it came.
	Raw jsontext.Value
}

// Saw reports whether text stands anywhere in the request.
func (r *Request) Saw(text string) bool { return strings.Contains(r.Texts(), text) }

// Last is what was said last; nothing: nobody said anything.
func (r *Request) Last() Message {
	if n := len(r.Messages); n > 0 {
		return r.Messages[n-1]
	}
	return Message{}
}

// Texts are all strings of the request, one after the other: what the model sees,
// whatever shape the protocol gives it.
func (r *Request) Texts() string {
	var b strings.Builder
	for s := range texts(r.Body) {
		b.WriteString(s)
		b.WriteByte('\n')
	}
	return b.String()
}

// A Server is the model, on the loopback interface. It is made by [Start],
// [StartFunc] or [Make].
type Server struct {
	// URL is where it listens, or [Host].
	URL string

	reply func(Request) Turn
	// loops: every request is for a turn.
	loops   bool
	handler http.Handler
	http    *httptest.Server // nil: it does not listen
	end     func()
	closed  <-chan struct{} // closed when the model is

	mu   sync.Mutex // guards all below
	seen []Request
	odd  []string
}

// Start starts a model with a script. After its last turn, the model says that it is done.
func Start(script ...Turn) *Server {
	s := made(Turns(script...))
	s.loops = false
	return s.listen()
}

// StartFunc starts a model that says what reply makes of a request. It is called by
// many goroutines where there are many clients.
func StartFunc(reply func(Request) Turn) *Server { return made(reply).listen() }

// Make is [StartFunc] of a model that does not listen: see [Server.Client].
func Make(reply func(Request) Turn) *Server { return made(reply) }

// Turns says at each turn what the script has for it, and then that it is done.
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

// Close stops the model. Answers under way are cut off.
func (s *Server) Close() {
	s.end()
	if s.http != nil {
		s.http.CloseClientConnections()
		s.http.Close()
	}
}

// Requests are those so far that ask for turns of the agent, in order.
func (s *Server) Requests() []Request {
	return slices.DeleteFunc(s.All(), func(r Request) bool { return r.Turn < 0 })
}

// All are the requests so far, those besides the agent's turns included.
func (s *Server) All() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// At is the first request for the turn, if there was one.
func (s *Server) At(turn int) (Request, bool) {
	all := s.Requests()
	if i := slices.IndexFunc(all, func(r Request) bool { return r.Turn == turn }); i >= 0 {
		return all[i], true
	}
	return Request{}, false
}

// Odd are requests to addresses that the model does not know, as method and path.
func (s *Server) Odd() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.odd)
}

// A protocol is one vendor's.
type protocol interface {
	// read says what a request asks for.
	read(body []byte) (Request, error)
	// write answers it, as a stream or whole.
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
		req.told()
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
			panic(http.ErrAbortHandler) // the client must not take half an answer for a whole one
		}
	}
}

// note remembers a request.
func (s *Server) note(req Request) Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loops {
		req.Turn = req.said()
	}
	for _, before := range s.seen {
		if before.Turn >= 0 {
			req.Nth++
		}
	}
	s.seen = append(s.seen, req)
	return req
}

// turn is what is said to a request, with nothing left to be made up.
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

// fault answers with an error or with what is none of the protocol's, if the turn is one.
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
		return // asked whether anybody is there
	}
	http.Error(w, `{"error":{"message":"not known here"}}`, http.StatusNotFound)
}

func static(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// stream writes events of a stream, as browsers read them. An empty name: events
// have none in this protocol.
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

// object is a JSON object that is written down where it is sent.
type object = map[string]any
