<?php

namespace Orders;

use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Serializer\SerializerInterface;
use Symfony\Component\Validator\Validator\ValidatorInterface;
use Twig\Environment;

final class OrderController
{
    public function __construct(
        private SerializerInterface $serializer,
        private ValidatorInterface $validator,
        private Environment $twig,
    ) {
    }

    public function show(Request $request, int $id): Response
    {
        $order = Order::numbered($id, $request->query->get('currency', 'EUR'));
        $mistakes = $this->validator->validate($order);
        if (\count($mistakes) > 0) {
            return new JsonResponse(['error' => (string) $mistakes->get(0)->getMessage()], 422);
        }

        $shown = ['attributes' => ['id', 'customer', 'email', 'currency', 'total']];

        return JsonResponse::fromJsonString($this->serializer->serialize($order, 'json', $shown));
    }

    public function page(Request $request, int $id): Response
    {
        return new Response($this->twig->render('order.html.twig', ['order' => Order::numbered($id, 'EUR')]));
    }
}
