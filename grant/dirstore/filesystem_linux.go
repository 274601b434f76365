package dirstore

import (
	"fmt"
	"syscall"
)

// checkFileSystem returns nil if a store may be on the file system of path.
func checkFileSystem(path string, o *Options) error {
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
	return fileSystemOf(uint32(st.Type)).check(path, o)
}

// fileSystemOf returns the file system with the magic number that statfs gives.
func fileSystemOf(magic uint32) fileSystem {
	if f, ok := linuxFileSystems()[magic]; ok {
		return f
	}
	return fileSystem{name: fmt.Sprintf("a file system of type %#x", magic)}
}

// linuxFileSystems comes from linux/magic.h and, for file systems that are not
// listed there, from their own source.
func linuxFileSystems() map[uint32]fileSystem {
	return map[uint32]fileSystem{
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
		0xf15f:     {"eCryptfs", durable}, // depends on the file system below it

		0x01021994: {"tmpfs", inMemory},
		0x858458f6: {"ramfs", inMemory},
		0x794c7630: {"overlayfs", layered},
		0x61756673: {"aufs", layered},

		0x6969:     {"NFS", remote},
		0x517b:     {"SMB", remote},
		0xff534d42: {"CIFS", remote},
		0xfe534d42: {"SMB", remote},
		0x564c:     {"NCP", remote},
		0x01021997: {"9p", remote}, // also from the host of a virtual machine, as in WSL
		0x73757245: {"Coda", remote},
		0x5346414f: {"AFS", remote},
		0x6b414653: {"AFS", remote},
		0x00c36400: {"Ceph", remote},
		0x0bd00bd0: {"Lustre", remote},
		0x01161970: {"GFS2", remote},
		0x7461636f: {"OCFS2", remote},
		0x47504653: {"GPFS", remote},
		0x19830326: {"BeeGFS", remote},
		0x20030528: {"OrangeFS", remote},
		0xaad7aaea: {"PanFS", remote},
		0x786f4256: {"vboxsf", remote}, // from the host of a virtual machine
		0xbacbacbc: {"vmhgfs", remote},
		0x7c7c6673: {"prl_fs", remote},

		0x65735546: {"FUSE", hidden}, // sshfs, gcsfuse, virtiofs, Docker Desktop

		0x4d44:     {"FAT", torn},
		0x2011bab0: {"exFAT", torn},
		0x4244:     {"HFS", torn},

		0x9660:     {"ISO 9660", readOnly},
		0x73717368: {"SquashFS", readOnly},
		0x28cd3d45: {"cramfs", readOnly},
		0xe0f5e1e2: {"EROFS", readOnly},
	}
}
