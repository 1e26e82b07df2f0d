package bucket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Fault is an error that a store answered, or the lack of an answer.
type Fault struct {
	Op     string // action of a policy, such as s3:PutObject
	Name   string // address of the object, or of the bucket
	Status int    // HTTP status; 0: no answer
	Code   string // code of the answer, such as SlowDown; empty: no answer
	text   string // what to do, or what the store says
	err    error
}

func (f *Fault) Error() string { return fmt.Sprintf("%s %s: %s", f.Op, f.Name, f.text) }

// Unwrap returns the error of the library or of the network.
func (f *Fault) Unwrap() error { return f.err }

// Passing tells whether the same request may succeed later, although nobody changes a
// configuration: the store is not reached, or overloaded, or broken.
func (f *Fault) Passing() bool {
	if none := (*credentialsError)(nil); errors.As(f.err, &none) {
		return none.had // their giver may be away for a while
	}
	if f.untrusted() {
		return false
	}
	switch {
	case f.Status == 0:
		return f.Code == ""
	case f.Status == http.StatusNotImplemented || f.Status == http.StatusHTTPVersionNotSupported:
		return false
	case f.Status == http.StatusRequestTimeout, f.Status == http.StatusTooManyRequests, f.Status == http.StatusConflict:
		return true
	}
	return f.Status >= 500 || f.Code == "SlowDown" || f.Code == "RequestTimeout"
}

// untrusted tells whether the server and this program do not agree on TLS.
func (f *Fault) untrusted() bool {
	var certificate *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	return errors.As(f.err, &certificate) || errors.As(f.err, &header) ||
		errors.Is(f.err, http.ErrSchemeMismatch)
}

// Certain tells whether the store certainly did nothing.
func (f *Fault) Certain() bool {
	if f.Status >= 400 && f.Status < 500 && f.Status != http.StatusRequestTimeout {
		return true
	}
	if f.Status == http.StatusNotImplemented {
		return true
	}
	if none := (*credentialsError)(nil); errors.As(f.err, &none) {
		return true
	}
	var dial *net.OpError
	return f.Status == 0 && errors.As(f.err, &dial) && dial.Op == "dial"
}

// Missing tells whether there is no such object. Answers to HEAD have no text, so the status
// decides; of a bucket that is not there the code tells.
func (f *Fault) Missing() bool {
	return f.Status == http.StatusNotFound && f.Code != minio.NoSuchBucket && f.Code != "NoSuchUpload"
}

// Changed tells whether a condition of the request did not hold.
func (f *Fault) Changed() bool { return f.Status == http.StatusPreconditionFailed }

// Fault makes an error of the library one that says what to do. nil stays nil.
func (c *Client) Fault(op, name string, err error) *Fault {
	if err == nil {
		return nil
	}
	if f := (*Fault)(nil); errors.As(err, &f) {
		return f
	}
	f := &Fault{Op: op, Name: c.Shown(name), err: err, text: short(err.Error())}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		f.explainSilence(c)
		return f
	}
	f.Status, f.Code = answer.StatusCode, answer.Code
	if f.Status < 300 && f.Code != "" { // in a list of errors, or in the body of an answer that began with 200
		f.Status = statusOf(f.Code)
	}
	f.explain(c, &answer)
	return f
}

// statusOf returns the HTTP status of a code that came without one.
func statusOf(code string) int {
	switch code {
	case "AccessDenied":
		return http.StatusForbidden
	case "NoSuchKey":
		return http.StatusNotFound
	case "SlowDown", "ServiceUnavailable":
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// explainSilence says why there is no answer.
func (f *Fault) explainSilence(c *Client) {
	var dial *net.OpError
	var none *credentialsError
	switch {
	case errors.As(f.err, &none):
		f.text = none.Error()
	case errors.Is(f.err, context.DeadlineExceeded):
		f.text = c.Server() + " does not answer in time"
	case errors.Is(f.err, http.ErrSchemeMismatch):
		f.text = c.Server() + " does not speak TLS: say http:// in --s3-endpoint"
	case f.untrusted():
		f.text = fmt.Sprintf("%s has no certificate that is trusted here (%s): correct its name in --s3-endpoint, or "+
			"name the authority with SSL_CERT_FILE", c.Server(), reasonOfTLS(f.err))
	case errors.As(f.err, &dial) && dial.Op == "dial":
		f.text = fmt.Sprintf("%s cannot be reached: %s", c.Server(), short(dial.Error()))
	}
}

// reasonOfTLS returns why there is no agreement, without the URL of the request.
func reasonOfTLS(err error) string {
	request := (*url.Error)(nil)
	if errors.As(err, &request) {
		err = request.Err
	}
	return short(strings.TrimPrefix(err.Error(), "tls: "))
}

// explain says in one line what the answer means and what to do.
func (f *Fault) explain(c *Client, a *minio.ErrorResponse) {
	elsewhere := a.Region != "" && a.Region != c.region
	switch a.Code {
	case minio.AuthorizationHeaderMalformed, minio.InvalidRegion, "PermanentRedirect", "TemporaryRedirect",
		"IllegalLocationConstraintException":
		f.text = fmt.Sprintf("bucket %s is not in region %s", c.at.Bucket, c.shownRegion())
		if elsewhere {
			f.text += fmt.Sprintf(", but in %s: say --s3-region %s", a.Region, a.Region)
		} else {
			f.text += ": name its region with --s3-region, or its server with --s3-endpoint"
		}
	case "RequestTimeTooSkewed":
		f.text = "the clock of this machine and that of the store differ by more than 15 minutes, so no signature is " +
			"accepted: set the clock"
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired":
		f.text = "the session token of the credentials has expired: get new credentials, and begin again"
	case "InvalidToken":
		f.text = "the session token of the credentials is wrong"
	case "InvalidAccessKeyId":
		f.text = c.Server() + " does not know the access key"
	case "SignatureDoesNotMatch":
		f.text = "the secret key does not belong to the access key"
	case minio.NoSuchBucket:
		f.text = fmt.Sprintf("%s has no bucket %s: make it, or correct its name", c.Server(), c.at.Bucket)
	case minio.AccessDenied, "Forbidden", "AllAccessDisabled":
		f.text = "denied: the credentials lack " + f.Op + " here"
		if f.Op == OpGet {
			f.text += ", or s3:ListBucket, without which a missing object looks like a forbidden one"
		}
		if elsewhere {
			f.text += fmt.Sprintf("; the bucket is in region %s", a.Region)
		}
	case minio.NotImplemented, minio.APINotSupported:
		f.text = c.Server() + " does not have what an output needs: " + short(a.Error())
	default:
		f.text = short(a.Error())
		if a.Code != "" && !strings.Contains(f.text, a.Code) {
			f.text = a.Code + ": " + f.text
		}
		if !c.end.secure && strings.Contains(a.Error(), "HTTP request to an HTTPS server") {
			f.text = c.Server() + " speaks TLS only: say https:// in --s3-endpoint"
		}
		if a.StatusCode == http.StatusMovedPermanently || a.StatusCode == http.StatusTemporaryRedirect {
			f.text = fmt.Sprintf("bucket %s is not in region %s: name its region with --s3-region", c.at.Bucket,
				c.shownRegion())
		}
	}
}

// Refused tells whether this program made the fault, of what it found: nothing failed.
func (f *Fault) Refused() bool { return f.Code == refused }

const refused = "Refused"

// Conflict tells whether another request for the same object is at work.
func (f *Fault) Conflict() bool { return f.Status == http.StatusConflict }

// Refusal returns a fault that this program finds, not the store. It does not pass.
func (c *Client) Refusal(op, name, text string) *Fault {
	return &Fault{Op: op, Name: c.Shown(name), Code: refused, text: text, err: errors.New(text)}
}
