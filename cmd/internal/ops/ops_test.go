package ops_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/internal/ops"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// Health checks and metrics need TLS beyond loopback, and use none on loopback.
func TestHTTPBeyondLoopbackNeedsTLS(t *testing.T) {
	ca := bustest.NewAuthority(t, "ours")
	files := ca.Issue(t, "server")
	var stack program.Stack
	defer func() { _ = stack.Stop(context.Background()) }()
	serve := func(addr string, files certs.Files) (string, error) {
		return ops.Serve(ops.Options{Addr: addr, TLS: files, Registry: ops.Registry(), Ready: func() error { return errors.New("not yet") }}, &stack)
	}
	if _, err := serve("0.0.0.0:0", certs.Files{}); err == nil || !strings.Contains(err.Error(), "--tls-cert") {
		t.Errorf("without a certificate: %v", err)
	}
	plain, err := serve("127.0.0.1:0", files)
	if err != nil || !strings.HasPrefix(plain, "http://127.0.0.1:") {
		t.Errorf("on loopback it is at %q, %v", plain, err)
	}
	url, err := serve("0.0.0.0:0", files)
	if err != nil {
		t.Fatal(err)
	}
	port := portOf(url)
	roots, err := certs.Files{CA: ca.File}.Roots()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusServiceUnavailable || string(body) != "not yet\n" {
		t.Errorf("the response is %d %q, %v", answer.StatusCode, body, err)
	}
}

// portOf returns the port of a URL.
func portOf(url string) string { return url[strings.LastIndexByte(url, ':')+1:] }

// With a CA bundle only clients with its certificates get an answer. On loopback, where there is no
// TLS, it is an error.
func TestClientsNeedACertificateOfTheBundle(t *testing.T) {
	ca, other := bustest.NewAuthority(t, "ours"), bustest.NewAuthority(t, "theirs")
	var stack program.Stack
	defer func() { _ = stack.Stop(context.Background()) }()
	opt := ops.Options{Addr: "0.0.0.0:0", TLS: ca.Issue(t, "server"), ClientCA: ca.File, Registry: ops.Registry(), Ready: func() error { return nil }}
	url, err := ops.Serve(opt, &stack)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		shows certs.Files
		let   bool
	}{
		"one of ours": {ca.Issue(t, "prometheus"), true}, "one of theirs": {other.Issue(t, "prometheus"), false}, "no certificate": {certs.Files{}, false},
	} {
		c.shows.CA = ca.File
		conf, err := c.shows.Client()
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: conf}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+portOf(url)+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		if (err == nil) != c.let {
			t.Errorf("%s: %v", name, err)
		}
		client.CloseIdleConnections()
	}
	opt.Addr = "127.0.0.1:0"
	if _, err := ops.Serve(opt, &stack); err == nil || !strings.Contains(err.Error(), "--http-tls-ca") {
		t.Errorf("on loopback: %v", err)
	}
}

func TestMetricsShowWhenCredentialsExpire(t *testing.T) {
	now, inf := time.Now(), math.Inf(1)
	for name, c := range map[string]struct {
		made, end      time.Time
		err            error
		left, lifetime float64
	}{
		"never":        {left: inf, lifetime: inf},
		"in an hour":   {made: now.Add(-time.Hour), end: now.Add(time.Hour), left: 3600, lifetime: 7200},
		"an hour ago":  {made: now.Add(-3 * time.Hour), end: now.Add(-time.Hour), lifetime: 7200},
		"no such file": {err: errors.New("it cannot be read"), lifetime: inf},
	} {
		reg := prometheus.NewRegistry()
		reg.MustRegister(ops.Credentials(func() (time.Time, time.Time, error) { return c.made, c.end, c.err })...)
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]float64)
		for _, family := range all {
			got[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
		}
		left, lifetime := got["hookfabric_credentials_left_seconds"], got["hookfabric_credentials_lifetime_seconds"]
		if left > c.left || left < c.left-60 || lifetime != c.lifetime || len(got) != 2 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
