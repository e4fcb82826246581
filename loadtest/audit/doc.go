// Package audit holds what was put into the queue of injections against what was
// handed over. What counts is written down where it happens, outside of the
// fabric: a [StartProducer] logs each receipt, a [Recipient] logs each injection
// that it handed over, before it acknowledges it ([Journal]). The [Audit] holds
// the logs against each other and against the list of the killed. It believes
// nothing that the fabric says of itself but the receipts.
package audit
