// Package audit checks the delivery of messages. Each process logs what it does, outside of
// the fabric: a [StartProducer] logs each receipt, and a [Recipient] logs each delivered
// message before it acknowledges it ([Journal]). The [Audit] compares these logs with each
// other and with the list of killed processes. Of the fabric it trusts only the receipts.
package audit
