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
	// firstPause is about how long the first pause is; each is twice as long as the one before,
	// up to longestPause.
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	// longestWish is how long a pause may be that an API asks for. Who is to wait
	// longer is told so instead.
	longestWish = 2 * time.Minute
)

// ask makes a request until it is answered, or nothing more can come of it.
func (c *Client) ask(ctx context.Context, body []byte) (jsontext.Value, error) {
	for n := 0; ; n++ {
		response, header, err := c.attempt(ctx, body)
		if err == nil {
			return response, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !passes(err) {
			return nil, err
		}
		if n >= c.opt.Retries {
			return nil, fmt.Errorf("%w (after %d attempts)", err, n+1)
		}
		d, wished := wish(header, time.Now())
		if !wished {
			d = pause(n)
		}
		if wished && d > longestWish {
			return nil, fmt.Errorf("%w (the API asks to wait %s, which is too long)", err, d)
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
			return nil, fmt.Errorf("%w (after %d attempts; there is no time for another)", err, n+1)
		}
		if !rest(ctx, d) {
			return nil, context.Cause(ctx)
		}
	}
}

// passes reports whether the reason of an error may be gone the next time.
func passes(err error) bool {
	if e, ok := errors.AsType[*APIError](err); ok {
		return e.passes()
	}
	_, ok := errors.AsType[*lostError](err)
	return ok
}

// pause is how long to wait after the attempt n: any time between half and all of
// it, so that those who failed together do not come again together.
func pause(n int) time.Duration {
	d := min(firstPause<<min(n, 10), longestPause)
	return d/2 + rand.N(d/2)
}

// wish is the pause that an API asks for, as seconds or as a date.
func wish(h http.Header, now time.Time) (time.Duration, bool) {
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= 0 {
		return time.Duration(min(s, 1e6) * float64(time.Second)), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
