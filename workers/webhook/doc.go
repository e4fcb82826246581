// Package webhook sends events to servers as hooks: one POST with the event's JSON per call.
//
// # What a server gets
//
// The body is the event as one JSON object, with Content-Type: application/json. The headers
// repeat the event's id and type as Hook-Id and Hook-Event. User-Agent names the fabric's
// release. The hook's `headers:` follow. If the hook has `sign:`, Hook-Timestamp and
// Hook-Signature follow, which [Verify] checks. If the fabric runs an idempotent hook again,
// the server gets the same Hook-Id again.
//
// In the value of a header, ${NAME} means the worker's environment variable NAME, and $$ a
// dollar sign. `sign:` names the variable with the key. The worker reads variables and the
// files of `tls:` when it loads a config version. Their values appear in no log, error or
// event: the worker removes the variables' values from a server's error texts.
//
// # What a server answers
//
// A status 2xx with one JSON object: the object is the answer. 204: no opinion. 422: the
// hook blocks; the reason is in the JSON object, or is the text of the answer. Everything
// else is an error, for which the hook's failure policy decides: another status, a
// redirection (the worker follows none), an empty body, or a body that is not labelled as
// JSON, is compressed, or is larger than [schema.MaxResult].
//
// A server checks the event itself; its only separate condition is the hook's `when:`.
// Effects and values are members of the answer.
//
// # Connections
//
// The worker keeps connections open, at most one per call under way, with HTTP/2 if the
// server's TLS offers it. It ignores proxies in its environment, so it contacts only
// addresses in the configuration. A call always ends at its deadline.
//
// The worker sends no request twice, because a server can act on a request without answering
// it. There are two exceptions. If a kept connection was closed before the worker sent
// anything, the request goes over another connection. And if an HTTP/2 server says that it
// did not process a request, the worker sends it once more, if the hook is idempotent.
//
// Over plain http, every machine on the way can read events and change answers. A hook with
// secrets (a key, or a variable in a header) therefore fails to load with an http:// URL,
// unless the server is on the same machine. A hook without secrets loads, with a warning in
// the log, for trusted networks.
//
// Start with handler.go (the runner, and one call), then request.go, sign.go and tls.go (the
// configuration and connections) and answer.go (the answer).
package webhook
