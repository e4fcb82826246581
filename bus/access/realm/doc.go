// Package realm keeps who may use a fabric: the operator by whose key all is
// signed, the tenants, which are NATS accounts, and the credentials that were
// issued. It is a folder, DIR/auth beside a broker's data:
//
//	realm.json        what is public of all that: keys, claims, names
//	seeds/KEY.seed    the operator's and the accounts' private keys
//	lock              held by whoever changes something
//
// realm.json changes as a whole or not at all, and by one process at a time; a
// server that follows the folder reads all that counts from this one file.
// Users' private keys are written into their credentials files and kept
// nowhere else.
package realm
