package schema

// Release is the version of this software, in semantic versioning.
const Release = "0.1.0"
