//! A commitment to many results at once: the root of a hash tree over them. Single ones can be shown
//! later, and nobody can change any of them meanwhile.
//!
//! The tree, its hashes and its paths are those of RFC 9162, sections 2.1.1 and 2.1.3.

use std::collections::BTreeSet;

use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::rand;
use serde::{Deserialize, Serialize};

use super::seeded::{Purpose, Seeded};

/// A SHA-256 digest (FIPS 180-4), of a leaf or of a node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sha256Hash([u8; 32]);

impl Sha256Hash {
    /// Of these bytes, one after the other.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut context = Context::new(&SHA256);
        parts.iter().for_each(|part| context.update(part));
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.finish().as_ref());
        Self(bytes)
    }

    /// Of a leaf, whose content is these parts.
    #[must_use]
    pub fn of_leaf(parts: &[&[u8]]) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(&[0]);
        parts.iter().for_each(|part| context.update(part));
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.finish().as_ref());
        Self(bytes)
    }

    fn of_node(left: Self, right: Self) -> Self {
        Self::of_parts(&[&[1], &left.0, &right.0])
    }

    /// Its bytes, as FIPS 180-4 orders them.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A hash tree with everything that it takes to show single leaves.
#[derive(Clone, Debug)]
pub struct HashTree {
    /// From the leaves to the root. A last hash without a neighbour goes up as it is.
    levels: Vec<Vec<Sha256Hash>>,
}

impl HashTree {
    /// Over the hashes of leaves.
    #[must_use]
    pub fn new(leaves: Vec<Sha256Hash>) -> Self {
        let mut levels = vec![leaves];
        while let Some(below) = levels.last()
            && below.len() > 1
        {
            let above = |pair: &[Sha256Hash]| match pair {
                [left, right] => Sha256Hash::of_node(*left, *right),
                _ => pair[0],
            };
            let level = below.chunks(2).map(above).collect();
            levels.push(level);
        }
        Self { levels }
    }

    /// The commitment to all leaves; of no leaf the hash of nothing.
    #[must_use]
    pub fn root(&self) -> Sha256Hash {
        let top = self.levels.last().and_then(|level| level.first());
        top.copied().unwrap_or_else(|| Sha256Hash::of_parts(&[]))
    }

    /// What shows that a leaf is in the tree: the neighbours on its way up. `None`: no such leaf.
    #[must_use]
    pub fn path(&self, index: u64) -> Option<Vec<Sha256Hash>> {
        let mut place = usize::try_from(index).ok()?;
        self.levels.first()?.get(place)?;
        let mut path = Vec::new();
        for level in &self.levels {
            path.extend(level.get(place ^ 1));
            place /= 2;
        }
        Some(path)
    }
}

/// The root of the tree of `count` leaves that has this leaf at `index`, by its path. `None`: the
/// path is not one of such a leaf.
#[must_use]
pub fn root_by_path(
    leaf: Sha256Hash,
    index: u64,
    count: u64,
    path: &[Sha256Hash],
) -> Option<Sha256Hash> {
    if index >= count {
        return None;
    }
    let mut hash = leaf;
    let mut place = index;
    let mut width = count;
    let mut rest = path.iter();
    while width > 1 {
        if place ^ 1 < width {
            let neighbour = *rest.next()?;
            hash = match place % 2 {
                0 => Sha256Hash::of_node(hash, neighbour),
                _ => Sha256Hash::of_node(neighbour, hash),
            };
        }
        place /= 2;
        width = width.div_ceil(2);
    }
    rest.next().is_none().then_some(hash)
}

/// Different numbers below `count`, in their order: as many as `wanted`, or all. They are drawn now,
/// and nobody could know them before.
#[must_use]
pub fn draw(count: u64, wanted: u64) -> Vec<u64> {
    if count <= wanted {
        return (0..count).collect();
    }
    let mut seed = [0; 8];
    // AWS-LC ends the process rather than go on without randomness.
    let filled = rand::fill(&mut seed);
    debug_assert!(filled.is_ok(), "{filled:?}");
    let mut random = Seeded::new(u64::from_le_bytes(seed), Purpose::Draw);
    let mut drawn = BTreeSet::new();
    while (drawn.len() as u64) < wanted {
        drawn.insert(random.below(count as usize) as u64);
    }
    drawn.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The leaves and roots that implementations of Certificate Transparency are tested with.
    #[test]
    fn roots_are_those_of_certificate_transparency() {
        let leaves = [
            "",
            "00",
            "10",
            "2021",
            "3031",
            "40414243",
            "5051525354555657",
            "606162636465666768696a6b6c6d6e6f",
        ];
        let hash = |text: &&str| Sha256Hash::of_leaf(&[&hex::decode(text).unwrap()]);
        for (count, root) in [
            (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
            (2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
            (3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
            (5, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"),
            (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
        ] {
            let tree = HashTree::new(leaves[..count].iter().map(hash).collect());
            assert_eq!(hex::encode(tree.root().as_bytes()), root, "{count}");
        }
    }

    proptest! {
        #[test]
        fn a_path_leads_to_the_root_from_its_own_leaf_and_place_alone(
            count in 1u64..70, index in 0u64..70, other in 0u64..70, bit in 0usize..256,
        ) {
            let index = index % count;
            let leaf = |number: u64| Sha256Hash::of_leaf(&[&number.to_le_bytes()]);
            let tree = HashTree::new((0..count).map(leaf).collect());
            let path = tree.path(index).unwrap();
            let root = |leaf, index, count, path: &[Sha256Hash]| {
                root_by_path(leaf, index, count, path) == Some(tree.root())
            };
            prop_assert!(root(leaf(index), index, count, &path));
            prop_assert!(!root(leaf(count), index, count, &path));
            prop_assert!(other % count == index || !root(leaf(index), other % count, count, &path));
            prop_assert!(!root(leaf(index), index + count, count, &path));
            let mut changed = leaf(index);
            changed.0[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!root(changed, index, count, &path));
            let longer = [&path[..], &[changed]].concat();
            prop_assert!(!root(leaf(index), index, count, &longer));
            for place in 0..path.len() {
                let mut wrong = path.clone();
                wrong[place].0[bit / 8] ^= 1 << (bit % 8);
                prop_assert!(!root(leaf(index), index, count, &wrong));
            }
            prop_assert!(tree.path(count).is_none());
        }
    }

    #[test]
    fn what_is_drawn_is_different_each_time_and_evenly_spread() {
        assert_eq!(draw(3, 8), [0, 1, 2]);
        assert_eq!(draw(0, 8), [0u64; 0]);
        let mut times = [0u32; 10];
        for _ in 0..1000 {
            let drawn = draw(10, 5);
            assert!(drawn.len() == 5 && drawn.is_sorted());
            drawn.iter().for_each(|index| times[*index as usize] += 1);
        }
        // Each is drawn 500 times on average, with a standard deviation of 16.
        assert!(times.iter().all(|times| (400..600).contains(times)), "{times:?}");
        assert_ne!(draw(u64::MAX >> 1, 4), draw(u64::MAX >> 1, 4));
    }
}
