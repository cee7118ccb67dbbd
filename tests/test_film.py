import torch

from cascaded.cascade.film import join, layout, moving, still


def frames(*values):
    return torch.tensor(values, dtype=torch.float64).view(-1, 1, 1)


def test_a_still_image_is_one_frame_that_holds():
    film = still(torch.tensor([[1.0], [2.0]]), steps=3)
    assert film.num_frames == 1
    assert film.unfold().squeeze(-1).tolist() == [[1, 2]] * 3


def test_a_film_shorter_than_asked_holds_its_last_frame():
    assert moving(frames(1, 2), steps=4).unfold().flatten().tolist() == [1, 2, 2, 2]


def test_a_film_longer_than_asked_is_cut():
    assert moving(frames(1, 2, 3), steps=2).unfold().flatten().tolist() == [1, 2]
    assert moving(frames(1, 2, 3)).first(1).unfold().flatten().tolist() == [1]


def test_holding_more_than_is_missing_changes_nothing():
    film = moving(frames(1, 2), steps=4)
    assert film.hold(2) is film
    assert film.hold(3).unfold().flatten().tolist() == film.unfold().flatten().tolist()


def test_in_a_join_the_shorter_film_holds():
    joined = join(moving(frames(1, 2), steps=4), moving(frames(10, 20, 30), steps=4), torch.add)
    assert joined.num_frames == 3
    assert joined.unfold().flatten().tolist() == [11, 22, 32, 32]


def test_a_layer_sees_every_stored_frame_once():
    calls = []
    film = moving(frames(1, 2), steps=9).map(lambda x: (calls.append(len(x)), x)[1])
    assert calls == [2]
    assert film.steps == 9


def test_a_film_in_pieces_is_the_film():
    film = moving(frames(1, 2, 3), steps=7)
    pieces = list(film.pieces(2))
    assert [(piece.start, piece.steps) for piece in pieces] == [(1, 2), (3, 2), (5, 2), (7, 1)]
    assert torch.cat([piece.unfold() for piece in pieces]).flatten().tolist() == [1, 2, 3, 3, 3, 3, 3]


def test_layout_tells_channels_last():
    x = torch.zeros(2, 3, 4, 5)
    assert layout(x) == torch.contiguous_format
    assert layout(x.contiguous(memory_format=torch.channels_last)) == torch.channels_last
