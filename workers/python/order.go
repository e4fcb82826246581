package python

import (
	_ "embed" // the sources that hosts are sent
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// The Python side. It travels to each host through its pipe, so that there are
// no files to clean up.
var (
	//go:embed hookfabric/_bootstrap.py
	bootstrap string
	//go:embed hookfabric/_host.py
	hostSource string
	//go:embed hookfabric/__init__.py
	wordsSource string
	//go:embed hookfabric/_loop.py
	loopSource string
	//go:embed hookfabric/_massgen.py
	massgenSource string
)

// beginning is the first request to a host.
type beginning struct {
	Dirs      []string  `json:"dirs"`
	Memory    int64     `json:"memory"`
	Most      int       `json:"most"`
	Words     string    `json:"words"`
	Loop      string    `json:"loop"`
	Massgen   string    `json:"massgen"`
	Functions []loading `json:"functions"`
}

// loading asks a host to import a function and to know it by a number.
type loading struct {
	Number  uint32 `json:"load"`
	Handler string `json:"handler"`
}

// calling is the request to call a function about an event, at a place in a trace;
// nil: at none.
func calling(f *function, event []byte, c *trace.Context) [][]byte {
	head := strconv.AppendUint([]byte(`{"call":`), uint64(f.number), 10)
	if c != nil {
		head = c.AppendParent(append(head, `,"trace":["`...))
		state, _ := jsontext.AppendQuote([]byte(`",`), c.State) // of ASCII only
		head = append(append(head, state...), ']')
	}
	return [][]byte{append(head, `,"event":`...), event, []byte("}")}
}

// What else hosts are asked: to cancel a coroutine, and whether they listen.
const (
	cancelling = `{"cancel":true}`
	pinging    = `{}`
)

// answer is what a host says to a request.
type answer struct {
	Result    jsontext.Value `json:"result"`
	Error     string         `json:"error"`
	Raised    bool           `json:"raised"`
	Traceback string         `json:"traceback"`
	Noted     string         `json:"noted"` // how its condition failed
	Doubt     string         `json:"doubt"` // the traceback of that
	Spent     bool           `json:"spent"` // its host is good for nothing more
	Async     bool           `json:"async"`
	Loaded    []uint32       `json:"loaded"`

	lost error // there is no answer, because of this
}

// fault is the error that an answer tells of; nil: none.
func (a *answer) fault() error {
	switch {
	case a.lost != nil:
		return a.lost
	case a.Error == "":
		return nil
	case a.Raised:
		return fmt.Errorf("raised %s", a.Error)
	}
	return errors.New(a.Error)
}

// besides is what an error says of the condition as well.
func (a *answer) besides() string {
	if a.Noted == "" {
		return ""
	}
	return "; " + a.Noted
}
