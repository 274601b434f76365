// Package s3store keeps grants in a bucket of S3, or of a service that works
// like it.
//
// It is for machines that have a bucket and no database. Each record is one
// object, and a compare-and-swap is a PUT with If-Match or If-None-Match. Many
// servers that offer S3 ignore these headers or lose writes, so Open probes the
// server and refuses it if it finds a fault.
//
// # Objects
//
// The value of a key is the object PREFIX/keys/KEY, in which ~ takes the place
// of slashes: firn/keys/v1~orders~n~00042. PREFIX/identity has a random text,
// which Lineage shows: a bucket that was emptied has another. A bucket whose
// objects were put back to earlier versions keeps it: fence. Only below
// PREFIX/probe/ anything is deleted. Do not delete anything by hand, and do not
// let lifecycle rules do it: IDs repeat if a record is missing.
//
// # Unknown results
//
// A write is sent once. It is applied if the answer is 200 with an ETag. If the
// answer is that the condition is false, the stored bytes decide, because
// something on the way may have sent the write twice. The error matches
// grant.ErrNotSent if the request was never passed to a connection, and if the
// answer is one that no server gives after writing: AccessDenied,
// SignatureDoesNotMatch, RequestTimeTooSkewed, NoSuchBucket, KeyTooLongError
// and 501. After every other answer the result is unknown and stays so.
//
// # ETags
//
// Nearly everywhere the ETag of an object is the MD5 sum of its bytes. If the
// probe finds that, a write names the sum of the old bytes, and no read can
// pair a value with the ETag of another. Where the ETag is something else, as
// with encryption by KMS, a write first reads the object.
package s3store
