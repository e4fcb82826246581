package otlp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// The variables of OpenTelemetry that are read. Those that begin with
// OTEL_EXPORTER_OTLP_ are also read with OTEL_EXPORTER_OTLP_TRACES_, which counts more.
const (
	envDisabled  = "OTEL_SDK_DISABLED"
	envExporter  = "OTEL_TRACES_EXPORTER"
	envService   = "OTEL_SERVICE_NAME"
	envResource  = "OTEL_RESOURCE_ATTRIBUTES"
	envSampler   = "OTEL_TRACES_SAMPLER"
	envSampleArg = "OTEL_TRACES_SAMPLER_ARG"
	envQueue     = "OTEL_BSP_MAX_QUEUE_SIZE"
	envBatch     = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
	envDelay     = "OTEL_BSP_SCHEDULE_DELAY"

	envAll    = "OTEL_EXPORTER_OTLP_"
	envTraces = "OTEL_EXPORTER_OTLP_TRACES_"
)

// maxQueue is the largest accepted OTEL_BSP_MAX_QUEUE_SIZE.
const maxQueue = 1 << 16

// Settings configure an [Exporter]. [Read] makes them.
type Settings struct {
	// URL is the endpoint for traces; empty: tracing is off. URL and Header may hold secrets, and
	// are never logged.
	URL    string
	Header http.Header
	TLS    certs.Files
	Gzip   bool
	// Timeout bounds one request.
	Timeout time.Duration
	// Resource describes this process.
	Resource []trace.Attribute
	// Queue is how many spans may wait, Batch how many go out at once, and Delay how long a span
	// waits for a batch to fill.
	Queue, Batch int
	Delay        time.Duration
	// Sample decides which traces are kept.
	Sample trace.Sampler
}

// reading reads the environment, and collects the errors in it.
type reading struct {
	env  func(string) string
	errs []error
}

func (r *reading) fault(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

// Read reads the OTEL_* variables. Without an endpoint, tracing is off, and Read does not check the
// other variables. service is the default service name; OTEL_SERVICE_NAME overrides it.
func Read(env func(string) string, service string) (Settings, error) {
	r := &reading{env: env}
	if r.endpoint() == "" || strings.EqualFold(env(envDisabled), "true") || env(envExporter) == "none" {
		return Settings{}, nil
	}
	if e := env(envExporter); e != "" && e != "otlp" {
		r.fault("%s is %.40q; use otlp or none", envExporter, e)
	}
	s := Settings{
		URL: r.url(), Header: r.header(), Gzip: r.gzip(),
		TLS:      certs.Files{CA: r.otlp("CERTIFICATE"), Cert: r.otlp("CLIENT_CERTIFICATE"), Key: r.otlp("CLIENT_KEY")},
		Timeout:  time.Duration(r.number(r.named("TIMEOUT"), 10_000, 3_600_000)) * time.Millisecond,
		Resource: r.resource(service),
		Queue:    r.number(envQueue, 2048, maxQueue),
		Delay:    time.Duration(r.number(envDelay, 5000, 3_600_000)) * time.Millisecond,
		Sample:   r.sampler(),
	}
	s.Batch = min(r.number(envBatch, 512, maxQueue), s.Queue)
	if p := r.otlp("PROTOCOL"); p != "" && p != "http/protobuf" {
		r.fault("%s is %.40q; only http/protobuf is supported: use it, and the port of OTLP over HTTP in the endpoint, usually 4318", r.named("PROTOCOL"), p)
	}
	if err := errors.Join(r.errs...); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// named returns the variable of the exporter that applies.
func (r *reading) named(what string) string {
	if r.env(envTraces+what) != "" {
		return envTraces + what
	}
	return envAll + what
}

func (r *reading) otlp(what string) string { return r.env(r.named(what)) }

func (r *reading) endpoint() string { return r.otlp("ENDPOINT") }

// url returns the endpoint for spans. The variable for spans alone has the whole address. The
// variable for all signals gets the path of spans added. The value may be a secret.
func (r *reading) url() string {
	name := r.named("ENDPOINT")
	u, err := url.Parse(r.env(name))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		r.fault("%s is not a valid URL for spans; use one such as http://127.0.0.1:4318", name)
		return ""
	}
	if name == envAll+"ENDPOINT" {
		u = u.JoinPath("v1", "traces")
	}
	return u.String()
}

// pairs reads name=value,name=value, with %XX for reserved characters. Its errors never contain a
// value.
func (r *reading) pairs(name string, use func(key, value string)) {
	for pair := range strings.SplitSeq(r.env(name), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || key == "" || err != nil {
			r.fault("%s has a part that is not name=value; use name=value,name=value, with %%2C for a comma and %%25 for a percent sign in a value", name)
			return
		}
		use(key, value)
	}
}

// header returns the headers of every request. Their values are secrets.
func (r *reading) header() http.Header {
	h := http.Header{}
	name := r.named("HEADERS")
	r.pairs(name, func(key, value string) {
		if strings.ContainsAny(key+value, "\r\n\x00") || strings.ContainsAny(key, " :\t") {
			r.fault("%s has an invalid header; use names of letters, digits and -, and values of one line", name)
			return
		}
		h.Set(key, value)
	})
	h.Set("Content-Type", "application/x-protobuf")
	h.Set("User-Agent", "hookfabric/"+schema.Release)
	return h
}

func (r *reading) gzip() bool {
	c := r.otlp("COMPRESSION")
	if c != "" && c != "none" && c != "gzip" {
		r.fault("%s is %.40q; use gzip or none", r.named("COMPRESSION"), c)
	}
	return c == "gzip"
}

// number reads a whole number from 1 to most.
func (r *reading) number(name string, standard, most int) int {
	v := r.env(name)
	if v == "" {
		return standard
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most {
		r.fault("%s is %.40q; use a number from 1 to %d", name, v, most)
		return standard
	}
	return n
}

// resource returns the attributes of this process. Those of the environment override its own.
func (r *reading) resource(service string) []trace.Attribute {
	given := map[string]string{}
	var order []string
	r.pairs(envResource, func(key, value string) {
		if _, twice := given[key]; !twice {
			order = append(order, key)
		}
		given[key] = value
	})
	set := func(key, value string, over bool) {
		if _, there := given[key]; !there {
			order = append(order, key)
		} else if !over {
			return
		}
		given[key] = value
	}
	set("service.name", service, false)
	if v := r.env(envService); v != "" {
		set("service.name", v, true)
	}
	set("service.version", schema.Release, false)
	set("process.pid", strconv.Itoa(os.Getpid()), false)
	if host, err := os.Hostname(); err == nil {
		set("host.name", host, false)
	}
	all := make([]trace.Attribute, 0, len(order))
	for _, key := range order {
		all = append(all, trace.Attribute{Key: trace.Fit(key), Value: trace.Fit(given[key])})
	}
	return all
}
