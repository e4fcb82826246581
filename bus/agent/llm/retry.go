package llm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// firstPause is about the length of the first pause. Each pause is twice as long as
	// the one before, up to longestPause.
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	// longestRequestedPause is the longest pause that the client makes if an API asks for it. A
	// longer one is an error.
	longestRequestedPause = 2 * time.Minute
)

// ask makes a request until it succeeds, or until a repetition cannot help.
func (c *Client) ask(ctx context.Context, body []byte) (jsontext.Value, error) {
	for n := 0; ; n++ {
		response, header, err := c.attempt(ctx, body)
		if err == nil {
			return response, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !isTemporary(err) {
			return nil, err
		}
		if n >= c.opt.Retries {
			return nil, fmt.Errorf("%w (after %d attempts)", err, n+1)
		}
		d, wished := requestedPause(header, time.Now())
		if !wished {
			d = pause(n)
		}
		if wished && d > longestRequestedPause {
			return nil, fmt.Errorf("%w (the API asks to wait %s, which is too long)", err, d)
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
			return nil, fmt.Errorf("%w (after %d attempts; there is no time for another)", err, n+1)
		}
		if !sleep(ctx, d) {
			return nil, context.Cause(ctx)
		}
	}
}

// isTemporary reports whether a repeated call may succeed.
func isTemporary(err error) bool {
	if e, ok := errors.AsType[*APIError](err); ok {
		return e.isTemporary()
	}
	_, ok := errors.AsType[*lostError](err)
	return ok
}

// pause returns how long to wait after attempt n. It is a random time between half and
// all of the interval, so that clients that failed together do not retry together.
func pause(n int) time.Duration {
	d := min(firstPause<<min(n, 10), longestPause)
	return d/2 + rand.N(d/2)
}

// requestedPause returns the pause that an API asks for, in seconds or as a date.
func requestedPause(h http.Header, now time.Time) (time.Duration, bool) {
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= 0 {
		return time.Duration(min(s, 1e6) * float64(time.Second)), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
