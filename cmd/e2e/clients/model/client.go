package model

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
)

// Client returns an HTTP client whose requests all go to the model, without a network, for bubbles of testing/synctest.
func (s *Server) Client() *http.Client { return &http.Client{Transport: direct{s}} }

// direct passes requests to a model.
type direct struct{ model *Server }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body := []byte{}
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			cancel()
			return nil, err
		}
	}
	asked := r.Clone(ctx)
	asked.Body, asked.RequestURI = io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI()
	said := make(chan *http.Response, 1)
	go func() {
		defer cancel()
		defer close(said)
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // a panic's value is compared as net/http does
				panic(p)
			}
		}()
		w := httptest.NewRecorder()
		d.model.handler.ServeHTTP(w, asked)
		said <- w.Result()
	}()
	select {
	case answer, ok := <-said:
		if !ok {
			return nil, io.ErrUnexpectedEOF
		}
		return answer, nil
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}
