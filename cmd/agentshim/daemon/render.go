package daemon

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hookfabric/hookfabric/bus/agent/render"
)

// renderTime is how long a conversation may take to come in, and its answer to go out.
const renderTime = 30 * time.Second

const (
	// smallBody is what many may hand in at a time. A conversation becomes several times
	// its size on its way, so that of larger ones only largeBodies are at work, and the
	// others wait.
	smallBody   = 1 << 20
	largeBodies = 4
)

// rendering answers what needs no fabric: a body comes in, and goes out as another
// API has it. What cannot be rendered is a bad request, with a sentence.
func rendering(rooms chan struct{}, convert func(render.Format, []byte) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		format, err := render.ParseFormat(r.URL.Query().Get("format"))
		if err != nil {
			fault(w, http.StatusBadRequest, err.Error()+", as ?format=")
			return
		}
		if r.ContentLength < 0 || r.ContentLength > smallBody {
			select {
			case rooms <- struct{}{}:
				defer func() { <-rooms }()
			case <-time.After(renderTime):
				fault(w, http.StatusServiceUnavailable, "the daemon already converts its maximum of large conversations; try again later")
				return
			}
		}
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(renderTime))
		_ = control.SetWriteDeadline(time.Now().Add(2 * renderTime))
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, render.MaxInput))
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			fault(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is larger than the limit of %d bytes", render.MaxInput))
			return
		}
		if err == nil {
			body, err = convert(format, body)
		}
		if err != nil {
			fault(w, http.StatusBadRequest, err.Error())
			return
		}
		answer(w, http.StatusOK, body)
	}
}
