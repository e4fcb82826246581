package roles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// startWebhook serves hooks over HTTP, as without a fabric. It decodes the event, runs the
// number of hooks that the path names, and encodes the verdict.
func startWebhook(_ context.Context, _ struct{}) (*proc.Role, error) {
	return serving(func(_ context.Context, hooks int, event []byte) (any, error) {
		var e schema.Event
		if err := schema.Unmarshal(event, &e); err != nil {
			return nil, err
		}
		return folded(Webhook, allowed(hooks)), nil
	})
}

// httpAsk sends events to a webhook, or to the first of two stages.
func httpAsk(c *http.Client, url string) ask {
	return func(ctx context.Context, e *schema.Event, hooks int) (*schema.Verdict, error) {
		body, err := schema.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encoding an event: %w", err)
		}
		answer, err := post(ctx, c, url+"/"+strconv.Itoa(hooks), body)
		if err != nil {
			return nil, err
		}
		return verdict(answer)
	}
}

// keepAlive returns a client that keeps a connection for every caller: HTTP/1.1 answers one
// request at a time on each.
func keepAlive() *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 256,
		DisableCompression:  true,
	}}
}

func post(ctx context.Context, c *http.Client, url string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", url, err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", url, err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s: %s", url, answer.Status, said)
	}
	return said, nil
}

// serving returns a role that answers POST /<number of hooks> on a free port.
func serving(answer func(ctx context.Context, hooks int, event []byte) (any, error)) (*proc.Role, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("looking for a free port: %w", err)
	}
	s := &http.Server{Handler: handler(answer)}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	return &proc.Role{
		Facts: Address{URL: "http://" + l.Addr().String()},
		Do:    Settle,
		Close: func() error {
			err := s.Close()
			if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
				err = errors.Join(err, served)
			}
			return err
		},
	}, nil
}

func handler(answer func(ctx context.Context, hooks int, event []byte) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := judged(r, answer)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the caller notices an incomplete body
	}
}

func judged(r *http.Request, answer func(ctx context.Context, hooks int, event []byte) (any, error)) ([]byte, error) {
	hooks, err := strconv.Atoi(r.URL.Path[1:])
	if err != nil {
		return nil, fmt.Errorf("the path %q is no number of hooks; ask for /1", r.URL.Path)
	}
	event, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the event: %w", err)
	}
	v, err := answer(r.Context(), hooks, event)
	if err != nil {
		return nil, err
	}
	return schema.Marshal(v)
}
