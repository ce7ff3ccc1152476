//! Stored embeddings.

use zeph_memory::SqliteVectors;
use zeph_memory::embedding_cache::MAX_EMBEDDINGS;
use zeph_tools::embedding_cache::EmbeddingCache;

use crate::backend::number;
use crate::{open, place};

/// Proves SCH-4 for storage: each number is preserved bit for bit, by model and text, after reopening.
#[tokio::test]
async fn embeddings_are_stored_by_model_and_text() {
    let (_folder, path) = place();
    let store = open(&path).await;
    let kept = SqliteVectors::new(store.clone());
    let odd = [f32::MIN_POSITIVE, -0.0, 1.0 / 3.0, f32::MAX];
    let vectors = vec![odd.to_vec(), vec![1.0, 2.0, 3.0, 4.0]];
    kept.keep("m", &["a", "b \"ü\""], &vectors).await.unwrap();
    kept.keep("other", &["a"], &[vec![9.0]]).await.unwrap();
    kept.keep("m", &[], &[]).await.unwrap();
    store.close().await.unwrap();
    let kept = SqliteVectors::new(open(&path).await);
    let found = kept.kept("m", &["c", "b \"ü\"", "a", "a"]).await.unwrap();
    assert_eq!(found[0], None);
    assert_eq!(found[1].as_deref(), Some([1.0, 2.0, 3.0, 4.0].as_slice()));
    for found in &found[2..] {
        let bits = |numbers: &[f32]| numbers.iter().map(|it| it.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(found.as_ref().unwrap()), bits(&odd));
    }
    assert_eq!(kept.kept("other", &["a"]).await.unwrap(), [Some(vec![9.0])]);
    assert_eq!(kept.kept("third", &["a"]).await.unwrap(), [None]);
    assert_eq!(
        kept.kept("m", &[]).await.unwrap(),
        Vec::<Option<Vec<f32>>>::new()
    );
    kept.keep("m", &["a"], &[vec![5.0, 6.0]]).await.unwrap();
    assert_eq!(
        kept.kept("m", &["a"]).await.unwrap(),
        [Some(vec![5.0, 6.0])]
    );
    // The text itself is not stored.
    let hashed = "SELECT count(*) FROM embedding WHERE model = 'other' AND length(vector) = 4
                  AND text = 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb'";
    assert_eq!(number(&path, hashed).await, 1);
}

#[tokio::test]
async fn oldest_embeddings_are_evicted() {
    let (_folder, path) = place();
    let kept = SqliteVectors::new(open(&path).await);
    let texts: Vec<String> = (0..MAX_EMBEDDINGS + 3).map(|at| at.to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = vec![vec![1.0]; texts.len()];
    kept.keep("m", &texts, &vectors).await.unwrap();
    let found = kept.kept("m", &texts).await.unwrap();
    assert_eq!(found.iter().flatten().count(), MAX_EMBEDDINGS as usize);
    assert_eq!(found[..3], [None, None, None]);
}
