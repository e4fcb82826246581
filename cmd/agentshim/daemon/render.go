package daemon

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hookfabric/hookfabric/bus/agent/render"
)

// renderTime limits how long reading a conversation and writing the answer may take.
const renderTime = 30 * time.Second

const (
	// smallBody is the size, in bytes, up to which bodies are converted without waiting.
	// Conversion takes several times the size of a conversation, so only largeBodies larger
	// ones are converted at a time.
	smallBody   = 1 << 20
	largeBodies = 4
)

// rendering returns a handler that converts a body to or from the format of another API,
// without the fabric. A body that it cannot convert is a bad request.
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
