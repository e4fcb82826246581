package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/load"
)

// scraped returns the metrics of the run as Prometheus reads them.
func scraped(t *testing.T, r *Live) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.Addr()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the answer is %s, %v", answer.Status, err)
	}
	return string(body)
}

func served(t *testing.T) *Live {
	t.Helper()
	r, err := StartLive(LiveOptions{Scenario: "fleet", Metrics: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestWhatPrometheusReads(t *testing.T) {
	r := served(t)
	r.Calls("allowed", "answered", 7)
	r.Calls("allowed", "answered", 0)
	var many load.Histogram
	for range 5 {
		many.Record(30 * time.Microsecond)
	}
	many.Record(3 * time.Millisecond)
	many.Record(time.Minute)
	r.Times("allowed", &many)
	r.Offered(1500)
	r.InFlight(12)
	r.Wrong("denies are honoured", 2)
	r.Fault("kill")
	r.Progress(0.25, "a quarter")
	got := scraped(t, r)
	for _, want := range []string{
		`hookfabric_loadtest_calls_total{kind="allowed",outcome="answered"} 7`,
		`hookfabric_loadtest_call_seconds_bucket{kind="allowed",le="2.5e-05"} 0`,
		`hookfabric_loadtest_call_seconds_bucket{kind="allowed",le="5e-05"} 5`,
		`hookfabric_loadtest_call_seconds_bucket{kind="allowed",le="0.0032"} 6`,
		`hookfabric_loadtest_call_seconds_bucket{kind="allowed",le="+Inf"} 7`,
		`hookfabric_loadtest_call_seconds_count{kind="allowed"} 7`,
		`hookfabric_loadtest_offered_per_second 1500`,
		`hookfabric_loadtest_in_flight 12`,
		`hookfabric_loadtest_wrong_total{check="denies are honoured"} 2`,
		`hookfabric_loadtest_faults_total{kind="kill"} 1`,
		`hookfabric_loadtest_progress_ratio 0.25`,
		`hookfabric_loadtest_run_start_time_seconds 1.`,
		`scenario="fleet"} 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestOnlyThisMachineMayRead(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":9900", "[::]:9900", "10.0.0.1:9900", "example.com:9900", "127.0.0.1", ""} {
		if err := Loopback(addr); !errors.Is(err, ErrAddress) {
			t.Errorf("%q gave %v", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:9900", "localhost:9900", "[::1]:0"} {
		if err := Loopback(addr); err != nil {
			t.Errorf("%q gave %v", addr, err)
		}
	}
}

func TestAnAddressInUse(t *testing.T) {
	if r, err := StartLive(LiveOptions{Metrics: served(t).Addr()}); err == nil {
		t.Errorf("two runs are served on %s: %v", r.Addr(), r.Close())
	}
}

// TestNobodyLooks reports everything to runs that show nothing.
func TestNobodyLooks(t *testing.T) {
	unshown, err := StartLive(LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Live{nil, unshown} {
		r.Calls("a", "b", 1)
		r.Times("a", asked{t})
		r.Offered(1)
		r.InFlight(1)
		r.Wrong("c", 1)
		r.Fault("d")
		r.Over(1)
		r.Progress(1, "done")
		if n, err := r.Write([]byte("four")); n != 4 || err != nil || r.Addr() != "" {
			t.Errorf("it wrote %d, %v, and is served on %q", n, err, r.Addr())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// asked is a distribution that must not be read.
type asked struct{ t *testing.T }

func (a asked) Each(func(time.Duration, int64)) {
	a.t.Error("a run without metrics read the distribution")
}

func TestAFileGetsALineNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r, err := StartLive(LiveOptions{Progress: &out})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			r.Progress(float64(i)/100, "half")
			synctest.Wait()
			<-time.After(100 * time.Millisecond)
		}
		fmt.Fprintln(r, "repetition 1 of 2")
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		want := "[                    ]   0 % half\n[==========          ]  50 % half\nrepetition 1 of 2\n"
		if out.String() != want {
			t.Errorf("it got %q, want %q", &out, want)
		}
	})
}
