<?php

namespace Orders;

use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Serializer\SerializerInterface;

final class ProductController
{
    public function __construct(private SerializerInterface $serializer)
    {
    }

    public function show(int $id): Response
    {
        return JsonResponse::fromJsonString($this->serializer->serialize(Product::numbered($id), 'json'));
    }

    /** Reports the facts about PHP; the lab requests it once after each start. */
    public function probe(): Response
    {
        ob_start();
        require \dirname(__DIR__) . '/probe.php';

        return JsonResponse::fromJsonString(ob_get_clean());
    }
}
