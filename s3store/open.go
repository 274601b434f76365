package s3store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/firnid/firn/grant"
)

// Options configure Open.
type Options struct {
	// Bucket is the name of the bucket, which must exist.
	Bucket string

	// Prefix is the beginning of all object keys: parts joined by a slash.
	// Slashes at its ends are ignored. Empty means firn.
	Prefix string

	// Endpoint is the URL of a service other than AWS, such as
	// https://ACCOUNT.r2.cloudflarestorage.com. Open refuses to use one that
	// only the AWS configuration has.
	Endpoint string

	// Region is the bucket's region. Empty means that of the environment or the
	// AWS configuration file; with an Endpoint, us-east-1.
	Region string

	// PathStyle puts the bucket's name into the path, not into the host name.
	PathStyle bool

	// Timeout is how long Open waits for the first answer. Zero means five
	// seconds. The probe has a limit of its own.
	Timeout time.Duration
}

const (
	defaultTimeout = 5 * time.Second

	// answerLimit is how long a server may take to begin its answer to a
	// request that was sent. A silent connection must not use up the time that
	// a renewal has. To connect has the limit of the SDK, 30 seconds.
	answerLimit = 10 * time.Second
)

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixPart = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
)

// Check returns an error if the Options are invalid. It makes no request.
func (o *Options) Check() error {
	o = cmp.Or(o, new(Options))
	var faults []error
	add := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: %w", grant.ErrOptions, fmt.Errorf(format, args...)))
	}
	switch {
	case strings.HasSuffix(o.Bucket, "--x-s3"):
		add("bucket %q is a directory bucket, which lists keys in no order and has ETags of another kind: use a general "+
			"purpose bucket", o.Bucket)
	case strings.HasPrefix(o.Bucket, "arn:"), strings.HasSuffix(o.Bucket, ".mrap"), strings.HasSuffix(o.Bucket, "--xa-s3"):
		add("%q is an access point: one of several regions is several stores, and one of a directory bucket has ETags of "+
			"another kind; name a general purpose bucket itself", o.Bucket)
	case !bucketName.MatchString(o.Bucket):
		add("bucket %q is not the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens", o.Bucket)
	}
	if prefix := strings.Trim(o.Prefix, "/"); prefix != "" {
		for part := range strings.SplitSeq(prefix, "/") {
			if !prefixPart.MatchString(part) || len(prefix) > maxPrefix {
				add("prefix %q: use parts of up to 100 letters, digits, dots, hyphens and underscores, joined by one slash, up "+
					"to %d characters in total", o.Prefix, maxPrefix)
				break
			}
			if slices.Contains([]string{keysDir, probeDir, identityName + "/"}, part+"/") {
				add("prefix %q: %s is the name of objects of a store above it: use another name", o.Prefix, part)
			}
		}
	}
	if u, err := url.Parse(o.Endpoint); o.Endpoint != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" ||
		u.Host == "" || u.User != nil || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "") {
		shown, _, _ := strings.Cut(o.Endpoint, "?") // a credential must not show
		if err != nil || strings.ContainsAny(o.Endpoint, "@#") {
			shown = "(not shown)"
		}
		add("endpoint %s is not a URL such as https://s3.example.com", shown)
	}
	if o.Timeout < 0 {
		add("Timeout is %v", o.Timeout)
	}
	return errors.Join(faults...)
}

// Open returns a Store once the server has answered and is known to be fit: it
// runs the probe unless another member has run it within a day. It finds
// credentials as every AWS tool does. Its error matches grant.ErrUnreachable if
// the first answer takes longer than Timeout or ctx is done, and grant.ErrUnfit
// if the server is not fit.
//
// The Store is safe for concurrent use by multiple goroutines, and any number
// of Stores may use a prefix. A write is sent once; reads are repeated up to
// three times.
//
// By grant.As, the Store is also a grant.MultiGetter, a Lineage, a Clock,
// Dangers and Paced.
func Open(ctx context.Context, o *Options) (grant.Store, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := newStore(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.begin(ctx, cmp.Or(o.Timeout, defaultTimeout)); err != nil {
		_ = s.Close()
		return nil, s.diagnose(ctx, err)
	}
	s.probes.Go(s.repeat)
	return s, nil
}

// newStore makes a Store that has made no request to the bucket yet.
func newStore(ctx context.Context, o *Options) (*store, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithRegion(o.Region), config.WithRetryer(func() aws.Retryer {
		return aws.NopRetryer{}
	}))
	if err != nil {
		return nil, fmt.Errorf("%w: the AWS configuration: %w", grant.ErrOptions, err)
	}
	if c.Region == "" {
		if o.Endpoint == "" {
			return nil, fmt.Errorf("%w: no region: add region=REGION, or set AWS_REGION", grant.ErrOptions)
		}
		c.Region = "us-east-1"
	}
	// This store has connections of its own, and follows no redirect: a write
	// would be sent twice.
	t := http.DefaultTransport.(*http.Transport).Clone()
	if b, ok := c.HTTPClient.(*awshttp.BuildableClient); ok { // with the CA of AWS_CA_BUNDLE
		t = b.GetTransport().Clone()
	}
	t.MaxIdleConnsPerHost = atOnce
	t.ResponseHeaderTimeout = answerLimit
	t.WriteBufferSize = 1 << 10 // less than half of the probe's slow write
	endpoint := strings.TrimRight(o.Endpoint, "/")
	u, _ := url.Parse(endpoint)
	doer := &http.Client{
		Transport:     &transport{t, strings.Contains(u.Host, "tigris") || strings.HasSuffix(u.Hostname(), "t3.storage.dev")},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s := &store{transport: t, endpoint: cmp.Or(endpoint, "AWS "+c.Region)}
	s.bucket, s.prefix = o.Bucket, cmp.Or(strings.Trim(o.Prefix, "/"), "firn")+"/"
	s.s3 = s3.NewFromConfig(c, func(p *s3.Options) {
		p.HTTPClient, p.Logger = doer, logging.Nop{}
		p.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		p.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		p.UsePathStyle = o.PathStyle
		p.DisableMultiRegionAccessPoints = true
		if endpoint != "" {
			p.BaseEndpoint = &endpoint
		}
	})
	if endpoint == "" && s.s3.Options().BaseEndpoint != nil {
		return nil, fmt.Errorf("%w: the AWS configuration has an endpoint (AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3, or "+
			"endpoint_url of a profile), and this store has none: give it as endpoint=URL, or set "+
			"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true", grant.ErrOptions)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// begin waits until the server answers, and probes it unless it was probed.
func (s *store) begin(ctx context.Context, timeout time.Duration) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		known, err := s.recall(within)
		switch {
		case err == nil && known:
			return nil
		case err == nil:
			return s.examine(ctx)
		case !isPassing(err), isUntrusted(err), within.Err() != nil:
			return err
		}
	}
}

// diagnose returns why Open has failed with err.
func (s *store) diagnose(ctx context.Context, err error) error {
	code, status := codeOf(err)
	where := s.endpoint
	switch {
	case isUnfit(err):
		return fmt.Errorf("s3store: %s: %w", where, err)
	case isUntrusted(err):
		return fmt.Errorf("s3store: %s: %w: check that it uses TLS, and name the file of its authority in AWS_CA_BUNDLE if "+
			"the system does not trust it", where, err)
	case ctx.Err() != nil:
		err = ctx.Err()
	case strings.Contains(err.Error(), "get identity: get credentials"):
		return fmt.Errorf("s3store: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use any other way "+
			"that AWS tools know: %w", err)
	case code == "NoSuchBucket":
		return fmt.Errorf("s3store: bucket %s not found at %s: create it", s.bucket, where)
	case code == "SignatureDoesNotMatch" || code == "InvalidAccessKeyId":
		return fmt.Errorf("s3store: %s does not accept the credentials: check the access key, its secret and the region: %w",
			where, err)
	case code == "RequestTimeTooSkewed":
		return fmt.Errorf("s3store: the clock of this machine or of %s is wrong: %w", where, err)
	case status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect:
		return fmt.Errorf("s3store: bucket %s is in another region than %s: add region=REGION: %w", s.bucket, where, err)
	case status == http.StatusForbidden:
		return fmt.Errorf("s3store: permission denied: bucket %s at %s: it needs s3:ListBucket, and s3:GetObject, "+
			"s3:PutObject, and below %sprobe/ s3:DeleteObject (see docs/object-store.md): %w", s.bucket, where, s.prefix, err)
	case status != 0 && !isPassing(err):
		return fmt.Errorf("s3store: %s: %w", where, err)
	}
	return fmt.Errorf("%w: %s: %w: check the endpoint and the region", grant.ErrUnreachable, where, err)
}
