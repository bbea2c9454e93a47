//! A bounded reader of bolt files: both metas, buckets, first and last keys. No map, no freelist, no write.
//!
//! Every number found in the file is checked before it is used: page ids against the file, positions and
//! sizes against their page, depth and number of pages against a limit, so that cyclic or absurd pages end
//! with an error that names the byte. Only what is asked for is read: a page's head, one element, one key.

use std::cell::Cell;

use crate::fault::{Result, damage, damage_at};
use crate::files::Source;

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
const PAGE_HEAD_BYTES: u64 = 16;
const ELEMENT_BYTES: u64 = 16;
const META_BYTES: usize = 64;
/// The part of a meta that its checksum covers.
const META_SUMMED_BYTES: usize = 56;
const PAGE_SIZE_MIN: u64 = 512;
const PAGE_SIZE_MAX: u64 = 65_536;
const FLAG_BRANCH: u16 = 0x01;
const FLAG_LEAF: u16 = 0x02;
const FLAG_BUCKET: u32 = 0x01;
const BUCKET_HEAD_BYTES: usize = 16;

/// bolt's own limit.
const KEY_BYTES_MAX: u64 = 32_768;
/// Members and marks are a few hundred bytes; keys' values are never read.
const VALUE_BYTES_MAX: u64 = 1 << 20;
/// A tree of 2^32 pages is less than ten deep.
const DEPTH_MAX: u32 = 32;
/// One read of a directory needs some twenty pages.
const PAGES_MAX: u32 = 4096;

/// A bolt file, as of the newest whole transaction.
#[derive(Debug)]
pub(crate) struct Bolt<'a, S> {
    source: &'a S,
    meta: Meta,
    /// What is wrong with the meta that is not used.
    pub(crate) other_meta: Option<String>,
    pages_read: Cell<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Meta {
    page_size: u64,
    root: u64,
    /// The first page id that was never used.
    page_end: u64,
    transaction: u64,
}

/// Where a bucket's pages begin.
#[derive(Debug)]
pub(crate) enum Bucket {
    Tree {
        root: u64,
    },
    /// A small bucket's only page lies within its parent's element.
    Inline {
        page: Vec<u8>,
        offset: u64,
    },
}

/// One page: its place in the file, or a copy in memory.
#[derive(Debug)]
struct Page<'a> {
    memory: Option<&'a [u8]>,
    offset: u64,
    span: u64,
    leaf: bool,
    count: u64,
    /// Its elements, all of them checked.
    table: Vec<u8>,
}

#[derive(Debug)]
struct Leaf {
    bucket: bool,
    key: u64,
    key_bytes: u64,
    value_bytes: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The first of `count` positions for which `before` no longer holds.
fn partition(count: u64, before: impl Fn(u64) -> Result<bool>) -> Result<u64> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if before(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

impl Meta {
    /// The meta at this place, or what is wrong with it.
    fn read<S: Source>(source: &S, offset: u64) -> Result<std::result::Result<Self, &'static str>> {
        let mut bytes = [0; META_BYTES];
        if source.read_at(&mut bytes, offset + PAGE_HEAD_BYTES)? < META_BYTES {
            return Ok(Err("the file ends before it"));
        }
        Ok(Self::parse(&bytes))
    }

    fn parse(bytes: &[u8; META_BYTES]) -> std::result::Result<Self, &'static str> {
        if u32_at(bytes, 0) != MAGIC {
            return Err("the magic number is not bolt's");
        }
        if u32_at(bytes, 4) != VERSION {
            return Err("it is of another version");
        }
        if fnv1a(&bytes[..META_SUMMED_BYTES]) != u64_at(bytes, META_SUMMED_BYTES) {
            return Err("its checksum fails");
        }
        let page_size = u64::from(u32_at(bytes, 8));
        if !page_size.is_power_of_two() || !(PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&page_size) {
            return Err("it names an impossible page size");
        }
        Ok(Self {
            page_size,
            root: u64_at(bytes, 16),
            page_end: u64_at(bytes, 40),
            transaction: u64_at(bytes, 48),
        })
    }

    /// The newest valid meta of the two, and what is wrong with the other.
    fn newest<S: Source>(source: &S) -> Result<(Self, Option<String>)> {
        let first = Self::read(source, 0)?;
        let (second, second_offset) = match first {
            Ok(first) => (Self::read(source, first.page_size)?, first.page_size),
            Err(_) => Self::search_second(source)?,
        };
        match (first, second) {
            (Ok(first), Ok(second)) if second.page_size != first.page_size => Ok((
                first,
                Some(format!("the meta at byte {second_offset} names another page size")),
            )),
            (Ok(first), Ok(second)) => {
                let newest = if first.transaction > second.transaction { first } else { second };
                Ok((newest, None))
            }
            (Ok(first), Err(what)) => {
                Ok((first, Some(format!("the meta at byte {second_offset} is damaged: {what}"))))
            }
            (Err(what), Ok(second)) => {
                Ok((second, Some(format!("the meta at byte 0 is damaged: {what}"))))
            }
            (Err(what), Err(_)) => {
                Err(damage_at(source.label(), 0, format!("no meta is intact: the first: {what}")))
            }
        }
    }

    /// The second meta where the first does not tell the page size: it must tell its own place.
    fn search_second<S: Source>(
        source: &S,
    ) -> Result<(std::result::Result<Self, &'static str>, u64)> {
        let mut size = PAGE_SIZE_MIN;
        while size <= PAGE_SIZE_MAX {
            if let Ok(meta) = Self::read(source, size)?
                && meta.page_size == size
            {
                return Ok((Ok(meta), size));
            }
            size *= 2;
        }
        Ok((Err("it was not found"), 0))
    }
}

impl<'a, S: Source> Bolt<'a, S> {
    /// Finds the newest whole transaction.
    pub(crate) fn open(source: &'a S) -> Result<Self> {
        if source.len() == 0 {
            return Err(damage(source.label(), "it is empty"));
        }
        let (meta, other_meta) = Meta::newest(source)?;
        let bolt = Self { source, meta, other_meta, pages_read: Cell::new(0) };
        // bolt makes the file large enough before it writes a page, so a shorter one was cut off.
        let needed = meta.page_end.checked_mul(meta.page_size);
        if needed.is_none_or(|needed| needed > source.len()) {
            let what = format!(
                "the file ends here, but {} pages of {} bytes are in use",
                meta.page_end, meta.page_size
            );
            return Err(damage_at(source.label(), source.len(), what));
        }
        Ok(bolt)
    }

    /// Whether a newer transaction has been written since: pages read in the meantime may be of both.
    pub(crate) fn has_changed(&self) -> Result<bool> {
        Ok(Meta::newest(self.source)?.0 != self.meta)
    }

    /// A bucket of the file's top level.
    pub(crate) fn bucket(&self, name: &str) -> Result<Option<Bucket>> {
        let root = Bucket::Tree { root: self.meta.root };
        let Some((page, element)) = self.find(&root, name.as_bytes())? else { return Ok(None) };
        let offset = page.offset + element.key + element.key_bytes;
        if !element.bucket || element.value_bytes < BUCKET_HEAD_BYTES as u64 {
            let what = format!("`{name}` is not a bucket");
            return Err(damage_at(self.source.label(), offset, what));
        }
        let value = self.value(&page, &element)?;
        Ok(Some(match u64_at(&value, 0) {
            0 => Bucket::Inline {
                page: value[BUCKET_HEAD_BYTES..].to_vec(),
                offset: offset + BUCKET_HEAD_BYTES as u64,
            },
            root => Bucket::Tree { root },
        }))
    }

    /// The value of a key.
    pub(crate) fn get(&self, bucket: &Bucket, key: &str) -> Result<Option<Vec<u8>>> {
        match self.find(bucket, key.as_bytes())? {
            Some((page, element)) => self.value(&page, &element).map(Some),
            None => Ok(None),
        }
    }

    /// The last key, from the rightmost leaf.
    pub(crate) fn last_key(&self, bucket: &Bucket) -> Result<Option<(Vec<u8>, u64)>> {
        self.last_below(self.root(bucket)?, 0)
    }

    fn last_below(&self, page: Page<'_>, depth: u32) -> Result<Option<(Vec<u8>, u64)>> {
        if page.leaf {
            let Some(last) = page.count.checked_sub(1) else { return Ok(None) };
            let key = self.leaf_key(&page, last)?;
            if last > 0 && self.leaf_key(&page, last - 1)? >= key {
                return Err(self.damage(&page, "its keys are not in order"));
            }
            let offset = page.offset + page.leaf(last).key;
            return Ok(Some((key, offset)));
        }
        // A leaf that a deletion has emptied may still hang there: then the one before it.
        for position in (0..page.count).rev() {
            let (separator, child) = self.branch(&page, position)?;
            let child = self.tree_page(child, depth + 1)?;
            if let Some((key, offset)) = self.last_below(child, depth + 1)? {
                if key < separator {
                    let what = "the last key is smaller than the one that leads to it";
                    return Err(damage_at(self.source.label(), offset, what));
                }
                return Ok(Some((key, offset)));
            }
        }
        Ok(None)
    }

    /// All keys and values of a small bucket.
    pub(crate) fn entries(&self, bucket: &Bucket, max: usize) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut entries = Vec::new();
        self.collect(self.root(bucket)?, 0, max, &mut entries)?;
        if !entries.windows(2).all(|two| two[0].0 < two[1].0) {
            return Err(damage(self.source.label(), "the keys of a bucket are not in order"));
        }
        Ok(entries)
    }

    fn collect(
        &self,
        page: Page<'_>,
        depth: u32,
        max: usize,
        entries: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<()> {
        for position in 0..page.count {
            if page.leaf {
                if entries.len() == max {
                    return Err(self.damage(&page, format!("a bucket has more than {max} keys")));
                }
                let element = page.leaf(position);
                let key = self.leaf_key(&page, position)?;
                entries.push((key, self.value(&page, &element)?));
            } else {
                let (_, child) = self.branch(&page, position)?;
                self.collect(self.tree_page(child, depth + 1)?, depth + 1, max, entries)?;
            }
        }
        Ok(())
    }

    fn find<'b>(&self, bucket: &'b Bucket, key: &[u8]) -> Result<Option<(Page<'b>, Leaf)>> {
        let mut page = self.root(bucket)?;
        let mut depth = 0;
        while !page.leaf {
            // The last child whose first key is not above the wanted one.
            let after = partition(page.count, |position| {
                Ok(self.branch(&page, position)?.0.as_slice() <= key)
            })?;
            let (_, child) = self.branch(&page, after.saturating_sub(1))?;
            depth += 1;
            page = self.tree_page(child, depth)?;
        }
        let found =
            partition(page.count, |position| Ok(self.leaf_key(&page, position)?.as_slice() < key))?;
        if found == page.count || self.leaf_key(&page, found)? != key {
            return Ok(None);
        }
        let element = page.leaf(found);
        Ok(Some((page, element)))
    }

    fn root<'b>(&self, bucket: &'b Bucket) -> Result<Page<'b>> {
        match bucket {
            Bucket::Tree { root } => self.tree_page(*root, 0),
            Bucket::Inline { page, offset } => {
                let parsed = self.page(Some(page), *offset, page.len() as u64)?;
                if !parsed.leaf {
                    return Err(self.damage(&parsed, "an inline bucket is not a leaf"));
                }
                Ok(parsed)
            }
        }
    }

    fn tree_page<'b>(&self, id: u64, depth: u32) -> Result<Page<'b>> {
        let label = self.source.label();
        let size = self.meta.page_size;
        if !(2..self.meta.page_end).contains(&id) {
            return Err(damage(label, format!("a page points to page {id}, which is not in use")));
        }
        let offset = id * size;
        if depth > DEPTH_MAX {
            return Err(damage_at(label, offset, "the tree is too deep: pages in a circle?"));
        }
        self.pages_read.set(self.pages_read.get() + 1);
        if self.pages_read.get() > PAGES_MAX {
            return Err(damage_at(label, offset, "too many pages: pages in a circle?"));
        }
        let mut head = [0; PAGE_HEAD_BYTES as usize];
        self.source.read_exact_at(&mut head, offset)?;
        if u64_at(&head, 0) != id {
            let what = format!("page {id} says it is page {}", u64_at(&head, 0));
            return Err(damage_at(label, offset, what));
        }
        let pages = u64::from(u32_at(&head, 12)) + 1;
        if id + pages > self.meta.page_end {
            return Err(damage_at(label, offset, format!("page {id} is {pages} pages long")));
        }
        self.page(None, offset, pages * size)
    }

    fn page<'b>(&self, memory: Option<&'b [u8]>, offset: u64, span: u64) -> Result<Page<'b>> {
        let mut page = Page { memory, offset, span, leaf: false, count: 0, table: Vec::new() };
        let head = self.bytes(&page, 0, PAGE_HEAD_BYTES)?;
        page.count = u64::from(u16_at(&head, 10));
        page.leaf = match u16_at(&head, 8) {
            FLAG_LEAF => true,
            FLAG_BRANCH => false,
            other => {
                let what = format!("a page of type {other:#x} where a leaf or a branch belongs");
                return Err(self.damage(&page, what));
            }
        };
        if PAGE_HEAD_BYTES + page.count * ELEMENT_BYTES > span {
            return Err(self.damage(&page, format!("{} elements do not fit into it", page.count)));
        }
        if !page.leaf && page.count == 0 {
            return Err(self.damage(&page, "a branch without children"));
        }
        page.table = self.bytes(&page, PAGE_HEAD_BYTES, page.count * ELEMENT_BYTES)?;
        for position in 0..page.count {
            let (start, bytes) = if page.leaf {
                let leaf = page.leaf(position);
                (leaf.key, leaf.key_bytes + leaf.value_bytes)
            } else {
                let (key, key_bytes, _) = page.branch(position);
                (key, key_bytes)
            };
            let table_end = PAGE_HEAD_BYTES + page.count * ELEMENT_BYTES;
            if start < table_end || start + bytes > span {
                return Err(
                    self.damage(&page, format!("element {position} lies outside of its page"))
                );
            }
        }
        Ok(page)
    }

    fn damage(&self, page: &Page<'_>, what: impl Into<String>) -> crate::fault::Fault {
        damage_at(self.source.label(), page.offset, what)
    }

    /// Bytes of a page, by their place in it.
    fn bytes(&self, page: &Page<'_>, start: u64, length: u64) -> Result<Vec<u8>> {
        let end = start.checked_add(length).filter(|end| *end <= page.span);
        let Some(end) = end else {
            let what = format!("{length} bytes at {start} of a page of {} bytes", page.span);
            return Err(self.damage(page, what));
        };
        if let Some(memory) = page.memory {
            return Ok(memory[start as usize..end as usize].to_vec());
        }
        let mut bytes = vec![0; length as usize];
        self.source.read_exact_at(&mut bytes, page.offset + start)?;
        Ok(bytes)
    }

    /// The key of a leaf's element.
    fn leaf_key(&self, page: &Page<'_>, position: u64) -> Result<Vec<u8>> {
        let leaf = page.leaf(position);
        self.key(page, leaf.key, leaf.key_bytes)
    }

    fn key(&self, page: &Page<'_>, start: u64, length: u64) -> Result<Vec<u8>> {
        if length > KEY_BYTES_MAX {
            return Err(self.damage(page, format!("a key of {length} bytes")));
        }
        self.bytes(page, start, length)
    }

    fn value(&self, page: &Page<'_>, leaf: &Leaf) -> Result<Vec<u8>> {
        if leaf.value_bytes > VALUE_BYTES_MAX {
            let what = format!("a value of {} bytes where a small one belongs", leaf.value_bytes);
            return Err(self.damage(page, what));
        }
        self.bytes(page, leaf.key + leaf.key_bytes, leaf.value_bytes)
    }

    /// A child of a branch: its first key and its page.
    fn branch(&self, page: &Page<'_>, position: u64) -> Result<(Vec<u8>, u64)> {
        let (key, key_bytes, child) = page.branch(position);
        Ok((self.key(page, key, key_bytes)?, child))
    }
}

impl Page<'_> {
    /// An element of a leaf. Callers keep the position below the page's count, as `element` demands.
    fn leaf(&self, position: u64) -> Leaf {
        let (start, element) = self.element(position);
        Leaf {
            bucket: u32_at(element, 0) & FLAG_BUCKET != 0,
            key: start + u64::from(u32_at(element, 4)),
            key_bytes: u64::from(u32_at(element, 8)),
            value_bytes: u64::from(u32_at(element, 12)),
        }
    }

    /// An element of a branch: its key's place and length, its page.
    fn branch(&self, position: u64) -> (u64, u64, u64) {
        let (start, element) = self.element(position);
        (start + u64::from(u32_at(element, 0)), u64::from(u32_at(element, 4)), u64_at(element, 8))
    }

    fn element(&self, position: u64) -> (u64, &[u8]) {
        let start = (position * ELEMENT_BYTES) as usize;
        (PAGE_HEAD_BYTES + start as u64, &self.table[start..start + ELEMENT_BYTES as usize])
    }
}
