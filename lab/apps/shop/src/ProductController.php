<?php

namespace Shop;

use Doctrine\DBAL\Connection;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\Response;

final class ProductController
{
    public function __construct(private Connection $db)
    {
    }

    public function list(): Response
    {
        return new JsonResponse($this->db->fetchAllAssociative('SELECT id, name, price, stock FROM small_item ORDER BY id'));
    }

    public function show(int $id): Response
    {
        $item = $this->db->fetchAssociative('SELECT id, name, price, stock FROM item WHERE id = ?', [$id]);
        if ($item === false) {
            return new JsonResponse(['error' => 'no such product'], 404);
        }
        $reviews = $this->db->fetchAllAssociative(
            'SELECT id, stars, text FROM review WHERE item_id = ? ORDER BY id',
            [$id],
        );
        $stars = array_column($reviews, 'stars');
        return new JsonResponse([
            'id' => (int) $item['id'],
            'name' => $item['name'],
            'price' => (int) $item['price'],
            'available' => $item['stock'] > 0,
            'rating' => $stars === [] ? null : array_sum($stars) / count($stars),
            'reviews' => array_map(
                static fn (array $review) => ['id' => (int) $review['id'], 'stars' => (int) $review['stars'], 'text' => $review['text']],
                $reviews,
            ),
        ]);
    }
}
