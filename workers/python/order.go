package python

import (
	_ "embed" // the sources of the Python side
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// The sources of the Python side. The worker sends them to each host through its pipe, so
// that it needs no temporary files.
var (
	//go:embed hookfabric/_bootstrap.py
	bootstrap string
	//go:embed hookfabric/_host.py
	hostSource string
	//go:embed hookfabric/__init__.py
	wordsSource string
	//go:embed hookfabric/_loop.py
	loopSource string
	//go:embed massgen/mcp_tools/hooks.py
	massgenSource string
	//go:embed massgen/mcp_tools/_builtins.py
	massgenBuiltins string
)

// beginning is the first request to a host.
type beginning struct {
	Dirs      []string  `json:"dirs"`
	Memory    int64     `json:"memory"`
	Most      int       `json:"most"`
	Words     string    `json:"words"`
	Loop      string    `json:"loop"`
	Massgen   string    `json:"massgen"`
	Builtins  string    `json:"massgen_builtins"`
	Functions []loading `json:"functions"`
}

// loading asks a host to import a function, which later requests name by its number.
type loading struct {
	Number  uint32 `json:"load"`
	Handler string `json:"handler"`
}

// calling returns the request to call a function with an event. c is the position in a
// trace; nil means no trace.
func calling(f *function, event []byte, c *trace.Context) [][]byte {
	head := strconv.AppendUint([]byte(`{"call":`), uint64(f.number), 10)
	if c != nil {
		head = c.AppendParent(append(head, `,"trace":["`...))
		state, _ := jsontext.AppendQuote([]byte(`",`), c.State) // of ASCII only
		head = append(append(head, state...), ']')
	}
	return [][]byte{append(head, `,"event":`...), event, []byte("}")}
}

// The requests to cancel a coroutine, and to answer at once.
const (
	cancelling = `{"cancel":true}`
	pinging    = `{}`
)

// answer is a host's answer to a request.
type answer struct {
	Result    jsontext.Value `json:"result"`
	Error     string         `json:"error"`
	Raised    bool           `json:"raised"`
	Traceback string         `json:"traceback"`
	Noted     string         `json:"noted"` // the error of its condition
	Doubt     string         `json:"doubt"` // the traceback of that error
	Spent     bool           `json:"spent"` // its host must be replaced
	Async     bool           `json:"async"`
	Loaded    []uint32       `json:"loaded"`

	lost error // why there is no answer
}

// fault returns the error in an answer, or nil.
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

// besides returns the error of the condition as an addition to another error.
func (a *answer) besides() string {
	if a.Noted == "" {
		return ""
	}
	return "; " + a.Noted
}
