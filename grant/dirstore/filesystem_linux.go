package dirstore

import (
	"fmt"
	"syscall"
)

// checkFileSystem returns nil if a store may be on the file system of path.
func checkFileSystem(path string, allowVolatile bool) error {
	var st syscall.Statfs_t
	for {
		err := syscall.Statfs(path, &st)
		if err == nil {
			break
		}
		if err != syscall.EINTR {
			return fmt.Errorf("dirstore: statfs %s: %w", path, err)
		}
	}
	return fileSystemOf(uint32(st.Type)).check(path, allowVolatile)
}

// fileSystemOf returns the file system with the magic number that statfs gives:
// one of linux/magic.h or, if it is not listed there, of its own source. Every
// other file system is refused.
func fileSystemOf(magic uint32) fileSystem {
	f, ok := map[uint32]fileSystem{
		0xef53:     {"ext4", durable}, // ext2 and ext3 have the same number
		0x58465342: {"XFS", durable},
		0x9123683e: {"Btrfs", durable},
		0x2fc12fc1: {"ZFS", durable},
		0xf2f52010: {"F2FS", durable},
		0xca451a4e: {"bcachefs", durable},
		0x3153464a: {"JFS", durable},
		0x3434:     {"NILFS", durable},
		0x52654973: {"ReiserFS", durable},
		0x24051905: {"UBIFS", durable},
		0x7366746e: {"NTFS", durable},

		0x01021994: {"tmpfs", volatile},
		0x858458f6: {"ramfs", volatile},
		0x794c7630: {"overlayfs", volatile},
		0x61756673: {"aufs", volatile},
	}[magic]
	if !ok {
		f.name = fmt.Sprintf("a file system of type %#x", magic)
	}
	return f
}
