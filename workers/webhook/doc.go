// Package webhook asks servers as hooks: one POST per call, of the event's JSON.
//
// # What a server gets
//
// The event as one JSON object, with Content-Type: application/json, the event's
// id and type again as Hook-Id and Hook-Event, a User-Agent that names the
// fabric's release, what the hook's `headers:` say, and, if it has a `sign:`,
// Hook-Timestamp and Hook-Signature, which [Verify] checks. The same Hook-Id
// comes again when the fabric runs an idempotent hook anew.
//
// In the value of a header ${NAME} stands for the worker's environment variable
// NAME, and $$ for a dollar sign. `sign:` names the variable that holds the key.
// Variables and the files of `tls:` are read when a config version is loaded;
// what they hold is in no log, error or event: where a server's words are told,
// the variables' values are taken out of them.
//
// # What it may answer
//
// A status 2xx with one JSON object: that is the answer. 204: no opinion. 422: it
// blocks, and the reason is the one in its JSON object, or the text it sent.
// Everything else (another status, also a redirection, which is never followed;
// nothing at all; something that is not called JSON, is compressed, or is larger
// than [schema.MaxResult]) is an error, for which the hook's failure policy decides.
//
// A server looks at its event itself: it has no condition but the hook's `when:`.
// Effects and values are members of its answer.
//
// # How it is asked
//
// Over connections that are kept, as many as a worker has calls under way at
// most, with HTTP/2 where the server's TLS offers that. Proxies of the
// environment are not used: no address is contacted that the configuration does
// not name. A call ends at its deadline, whatever has come by then.
//
// Nothing is asked twice, since a server may have acted on what it did not
// answer. Only a request of which nothing was sent yet, because its connection
// had gone, goes over another one; and over HTTP/2, where a server can say that
// it has not looked at a request, one of an idempotent hook goes out once more.
//
// Over plain http everybody on the way can read events and change answers. So a
// hook with secrets, be it a key or a variable in a header, is not loaded with a
// URL that begins with http:// unless its server is on the same machine; one
// without secrets is, with a warning in the log, for networks that are trusted.
//
// Start with runner.go, then target.go, header.go, template.go, sign.go and tls.go
// (what the configuration says), pool.go (connections), handler.go (one call) and
// answer.go (what came of it).
package webhook
