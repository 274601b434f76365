package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// git runs git in a directory and returns what it prints, without the last
// newline.
func git(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	return command(ctx, dir, env, "git", args...)
}

// command runs a program. Its error contains the program's output.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(append(stderr.Bytes(), stdout.Bytes()...)))
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

// checkOut creates src: a separate repository with the files of the release
// checked out.
func (r *release) checkOut(ctx context.Context) (base string, err error) {
	if !r.worktree {
		changes, err := git(ctx, r.repo, nil, "status", "--porcelain")
		if err != nil {
			return "", err
		}
		if changes != "" {
			return "", fmt.Errorf("the working tree has changes that are not committed:\n%s", changes)
		}
	}
	if base, err = git(ctx, r.repo, nil, "rev-parse", "HEAD"); err != nil {
		return "", err
	}
	seconds, err := git(ctx, r.repo, nil, "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return "", err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the time of commit %s: %w", base, err)
	}
	r.time = time.Unix(n, 0).UTC()
	if _, err := git(ctx, r.work, nil, "clone", "-q", "--shared", "--no-checkout", r.repo, r.src); err != nil {
		return "", err
	}
	from := base
	if r.worktree {
		// The files of the working tree, with a separate index.
		env := []string{"GIT_DIR=" + filepath.Join(r.src, ".git"), "GIT_WORK_TREE=" + r.repo, "GIT_INDEX_FILE=" + filepath.Join(r.work, "index")}
		if _, err := git(ctx, r.repo, env, "add", "-A"); err != nil {
			return "", err
		}
		tree, err := git(ctx, r.repo, env, "write-tree")
		if err != nil {
			return "", err
		}
		if from, err = r.commitTree(ctx, tree, base, "The working tree"); err != nil {
			return "", err
		}
	}
	_, err = git(ctx, r.src, nil, "checkout", "-q", "--detach", from)
	return from, err
}

// commitTree makes a commit with the names and the time of the commit that is
// released, so that it is the same whenever it is made.
func (r *release) commitTree(ctx context.Context, tree, parent, message string) (string, error) {
	who, err := git(ctx, r.repo, nil, "show", "-s", "--format=%cn%n%ce", "HEAD")
	if err != nil {
		return "", err
	}
	name, email, ok := strings.Cut(who, "\n")
	if !ok {
		return "", errors.New("the commit has no committer")
	}
	date := fmt.Sprintf("%d +0000", r.time.Unix())
	return git(ctx, r.src, []string{
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email, "GIT_COMMITTER_DATE=" + date,
	}, "commit-tree", tree, "-p", parent, "-m", message)
}

// addAll stages the files of src, and returns their tree.
func (r *release) addAll(ctx context.Context) (tree string, err error) {
	if _, err := git(ctx, r.src, nil, "add", "-A"); err != nil {
		return "", err
	}
	return git(ctx, r.src, nil, "write-tree")
}

// tag commits the tree and gives it the tags of all modules.
func (r *release) tag(ctx context.Context, tree, parent string) (err error) {
	if r.commit, err = r.commitTree(ctx, tree, parent, "firn "+r.version); err != nil {
		return err
	}
	for _, tag := range r.tags() {
		if _, err := git(ctx, r.src, nil, "tag", "-f", tag, r.commit); err != nil {
			return err
		}
	}
	_, err = git(ctx, r.src, nil, "checkout", "-q", "--detach", r.commit)
	return err
}
